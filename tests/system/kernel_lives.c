/* kernel_lives.c - processes that come and go where every CPU is wanted by others all the time */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/profil.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/layout.h"
#include "core/scope.h"
#include "kernel_ticks.h"

static struct daemon d;

static void start(void)
{
	static const char *args[] = { "--rate", TICKS_RATE, NULL };

	ticks_need_bpffs();
	daemon_start(&d, NULL, args);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_lives, .init = start, .fini = stop);

static const struct profil_tables *tables(void)
{
	__cleanup(closep) int fd = bpf_obj_get(ticks_stored(&d, "tables"));
	const struct profil_tables *t;

	cr_assert(fd >= 0, "%s: %s", ticks_stored(&d, "tables"), strerror(errno));
	t = mmap(NULL, sizeof(*t), PROT_READ, MAP_SHARED, fd, 0);
	cr_assert_neq(t, MAP_FAILED, "tables: %s", strerror(errno));
	return t;
}

static unsigned int members(const struct profil_tables *t)
{
	unsigned int n = 0;

	for (int i = 0; i < PROFIL_MAX_TARGETS; i++)
		n += __atomic_load_n(&t->target[i].members, __ATOMIC_SEQ_CST);
	return n;
}

/* What is under way when this is called is over within 20 s, on the slowest machine. */
static void expect_members(const struct profil_tables *t, unsigned int n, const char *who)
{
	struct timespec ms = { 0, 1000000 };

	for (int i = 0; i < 20000 && members(t) != n; i++)
		nanosleep(&ms, NULL);
	cr_expect_eq(members(t), n, "%s: %u processes are counted, not %u", who, members(t), n);
}

static pid_t fork_now(void)
{
	pid_t pid = fork();

	cr_assert(pid >= 0, "fork: %s", strerror(errno));
	return pid;
}

/* Wants a CPU all the time: so whoever is preempted waits for his next turn. */
static void disturb(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		;
}

#define DISTURBERS 4
#define PARENTS 24

/* Waits until nobody writes to @until any more, as itself or as another program. */
static void live(int until, int execs)
{
	char c;

	if (!execs)
		_exit(read(until, &c, 1) != 0);
	if (dup2(until, 0) == 0)
		execl("/bin/cat", "cat", NULL);
	_exit(1);
}

/* Has @children, and says so on @done. */
static void breed(const int until[2], int done, int children, int execs)
{
	char n = 0;

	close(until[1]);
	for (int i = 0; i < children; i++) {
		pid_t pid = fork();

		if (pid == 0)
			live(until[0], execs);
		n += pid > 0;
	}
	if (write(done, &n, 1) != 1)
		_exit(1);
	while (wait(NULL) > 0)
		;
	_exit(0);
}

/*
 * The kernel runs no program a second time on a CPU on which a task has been preempted in it: so
 * this must not happen where a fork, an exec or an end would be missed.
 */
static void none_is_missed(int children, int execs)
{
	static unsigned short buf[LOOPS];
	const struct profil_tables *t = tables();
	pid_t disturber[DISTURBERS], parent[PARENTS];
	int until[2], done[2];

	for (int i = 0; i < DISTURBERS; i++) {
		disturber[i] = fork_now();
		if (!disturber[i])
			disturb();
	}
	cr_assert_eq(pipe(until), 0);
	cr_assert_eq(pipe(done), 0);
	cr_assert_eq(ticks_profile(buf), 0);
	for (int i = 0; i < PARENTS; i++) {
		parent[i] = fork_now();
		if (!parent[i])
			breed(until, done[1], children, execs);
	}
	for (int i = 0; i < PARENTS; i++) {
		char n;

		cr_assert_eq(read(done[0], &n, 1), 1);
		cr_assert_eq(n, children, "a parent has %d children", n);
	}
	expect_members(t, 1 + PARENTS * (1 + (execs ? 0 : children)), "all alive");
	close(until[1]);
	for (int i = 0; i < PARENTS; i++) {
		int status;

		cr_assert_eq(waitpid(parent[i], &status, 0), parent[i]);
		cr_expect_eq(status, 0);
	}
	expect_members(t, 1, "all but one have ended");
	for (int i = 0; i < DISTURBERS; i++)
		kill(disturber[i], SIGKILL);
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
	expect_members(t, 0, "the profile has ended");
}

Test(kernel_lives, no_fork_is_missed_where_tasks_are_preempted, .timeout = 300)
{
	none_is_missed(60, 0);
}

Test(kernel_lives, no_exec_is_missed_where_tasks_are_preempted, .timeout = 300)
{
	none_is_missed(20, 1);
}
