/* kernel_lives.c - no fork, exec or exit is missed on busy CPUs, and a missed exec is detected */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/profil.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/shared_maps.h"
#include "base/cleanup.h"
#include "tests/lib/forks.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/state.h"

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

/* Waits for @n processes: the test ends when all are counted, and none more. */
static void await_members(const struct profil_tables *t, unsigned int n)
{
	AWAIT(members(t) == n);
}

/* Uses a CPU all the time, so that a preempted task waits for its next turn. */
static void disturb(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		;
}

#define DISTURBERS 4
#define PARENTS 24

/* Waits for the end of the pipe @until, after an exec if @execs. */
static void live(int until, int execs)
{
	char c;

	if (!execs)
		_exit(read(until, &c, 1) != 0);
	if (dup2(until, 0) == 0)
		execl("/bin/cat", "cat", NULL);
	_exit(1);
}

/* Forks @children and reports their number on @done. */
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
 * While a task is preempted inside a BPF program, the kernel skips that program on the same CPU.
 * The programs at fork, exec and exit must therefore not be preemptible.
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
	await_members(t, 1 + PARENTS * (1 + (execs ? 0 : children)));
	close(until[1]);
	for (int i = 0; i < PARENTS; i++) {
		int status;

		cr_assert_eq(waitpid(parent[i], &status, 0), parent[i]);
		cr_expect_eq(status, 0);
	}
	await_members(t, 1);
	for (int i = 0; i < DISTURBERS; i++)
		kill(disturber[i], SIGKILL);
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
	await_members(t, 0);
}

Test(kernel_lives, no_fork_is_missed_when_tasks_are_preempted)
{
	none_is_missed(60, 0);
}

Test(kernel_lives, no_exec_is_missed_when_tasks_are_preempted)
{
	none_is_missed(20, 1);
}

/* Removes the pinned link @name of a killed daemon and waits until the kernel has freed it. */
static void drop_link(const char *name)
{
	int fd = bpf_obj_get(ticks_stored(&d, name));
	struct bpf_link_info info = { 0 };
	__u32 bytes = sizeof(info);

	cr_assert(fd >= 0, "%s: %s", ticks_stored(&d, name), strerror(errno));
	cr_assert_eq(bpf_obj_get_info_by_fd(fd, &info, &bytes), 0);
	cr_assert_eq(unlink(ticks_stored(&d, name)), 0);
	close(fd);
	while ((fd = bpf_link_get_fd_by_id(info.id)) >= 0) {
		close(fd);
		await_pause();
	}
}

/* Starts a profile, waits for a byte, then execs a shell that works for about a second. */
static void become_another(int in, int out)
{
	static unsigned short buf[LOOPS];
	char c = ticks_profile(buf) ? 'x' : 'p';

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(in, STDIN_FILENO) == 0 && dup2(out, STDOUT_FILENO) == 1 && write(1, &c, 1) == 1 &&
	    read(0, &c, 1) == 1)
		execl("/bin/sh", "sh", "-c",
		      "printf b; i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; printf e; cat",
		      NULL);
	_exit(1);
}

static unsigned long long ticks(const struct profil_tables *t)
{
	unsigned long long n = 0;

	for (int i = 0; i < PROFIL_MAX_TARGETS; i++)
		n += __atomic_load_n(&t->target[i].total, __ATOMIC_SEQ_CST);
	return n;
}

/*
 * The BPF programs at exec are removed, so they miss this exec. On kernels that may skip them, the
 * tick program itself compares the exec_id.
 */
static void expect_missed_exec_to_end_profile(void)
{
	const struct profil_tables *t = tables();
	unsigned long long before;
	struct utsname system;
	int in[2], out[2];
	pid_t pid;
	char c;

	cr_assert_eq(uname(&system), 0);
	if (atoi(system.release) < 7)
		cr_skip_test("Linux %s misses no exec", system.release);
	cr_assert(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	pid = fork_now();
	if (!pid)
		become_another(in[0], out[1]);
	close(in[0]);
	close(out[1]);
	cr_assert(read(out[0], &c, 1) == 1 && c == 'p', "the process is not profiled");
	daemon_kill(&d);
	drop_link("link-exec");
	drop_link("link-exec-again");
	cr_assert_eq(write(in[1], "", 1), 1);
	cr_assert(read(out[0], &c, 1) == 1 && c == 'b', "the process has not exec'd");
	before = ticks(t);
	cr_assert(read(out[0], &c, 1) == 1 && c == 'e');
	cr_expect_eq(ticks(t), before, "%llu ticks of the new image", ticks(t) - before);
	cr_expect_eq(members(t), 0, "the process is still in the table");
	close(in[1]);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	daemon_restart(&d);
}

Test(kernel_lives, a_missed_exec_ends_the_profile_at_the_next_event)
{
	expect_missed_exec_to_end_profile();
}

Test(kernel_lives, a_missed_exec_ends_the_profile_at_the_next_timer_tick)
{
	static const char *args[] = { "--clock", "tick", "--rate", "77", NULL };

	daemon_stop(&d);
	d.args = args;
	daemon_restart(&d);
	expect_missed_exec_to_end_profile();
}
