/* kernel_fork.c - profiles of processes that fork, share memory, lose their leader, and end */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/profil.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/shared_maps.h"
#include "profil.h"
#include "tests/lib/fork_tree.h"
#include "tests/lib/forks.h"
#include "tests/lib/state.h"

#define MS 1000000ull
#define STACK_BYTES 65536

DAEMON_SUITE(kernel_fork, "--rate", TICKS_RATE);

Test(kernel_fork, each_process_of_a_tree_has_its_own_counts)
{
	fork_tree_grow(3);
}

static void sync_now(void)
{
	cr_assert_eq(profil_sync(), 0, "profil_sync: %s", strerror(errno));
}

/* Without a sync: the daemon writes every 100 ms. */
#define WRITTEN(counter) (*(volatile unsigned short *)&(counter))

/* --- one fork --------------------------------------------------------------------------------- */

static unsigned short buf[LOOPS]; /* each process has its own after a fork */

/* Two processes, in memory that both share. */
struct both {
	unsigned short buf[LOOPS];
	unsigned short seen[LOOPS]; /* the child's private buffer at its end */
	pid_t pid;
	int gate;
};

/*
 * The parent works in loop 0, the child in loop 1, which must not fail in the test's name: it exits
 * with 10.
 */
#define CHILD_SPINS(n, came)              \
	do {                              \
		if (!TICKS_SPUN(n, came)) \
			_exit(10);        \
	} while (0)

static pid_t profile_and_fork(unsigned short *into)
{
	forks_profile(into);
	return fork_now();
}

/* All counts but those of the loops @a, @b and @c. */
static unsigned int strays(const unsigned short counts[LOOPS], int a, int b, int c)
{
	unsigned int n = 0;

	for (int i = 0; i < LOOPS; i++)
		n += i == a || i == b || i == c ? 0 : counts[i];
	return n;
}

/* The kernel ends a profile with its last process; the daemon notices in its next drain. */
static void profiles_are_over(void)
{
	ticks_await_profiles(&d, 0);
}

Test(kernel_fork, a_shared_buffer_gets_the_ticks_of_both)
{
	struct both *b = forks_memory(sizeof(*b));
	unsigned short childs;
	pid_t pid;

	pid = profile_and_fork(b->buf);
	if (pid == 0) {
		CHILD_SPINS(1, TICKS_SYNCED(b->buf[1]));
		CHILD_SPINS(2, TICKS_SYNCED(b->buf[2]));
		_exit(profil_sync() != 0);
	}
	TICKS_SPIN(0, TICKS_SYNCED(b->buf[0]));
	reap(pid);
	childs = b->buf[2];
	cr_expect_gt(childs, 0, "the child has no tick in the loop of both");
	TICKS_SPIN(2, TICKS_SYNCED(b->buf[2]) > childs);
	sync_now();
	cr_expect_gt(b->buf[0], 0, "the parent");
	cr_expect_gt(b->buf[1], 0, "the child");
	cr_expect_gt(b->buf[2], 0, "both in one loop");
	cr_expect_eq(strays(b->buf, 0, 1, 2), 0);
}

/* Waits until @pid, which sets @b->pid before its request, sleeps until the daemon answers. */
static void await_connecting(pid_t pid, struct both *b)
{
	while (!__atomic_load_n(&b->pid, __ATOMIC_SEQ_CST))
		sched_yield();
	cr_assert(await_state(pid, pid, 'S'), "process %d has ended", (int)pid);
}

/*
 * The daemon has not seen any tick of the child before its request. In a hundred periods of CPU
 * time there are ticks, since no more than TICKS_TOLERANCE may be missing.
 */
Test(kernel_fork, a_childs_first_request_gets_its_first_ticks)
{
	struct both *b = forks_memory(sizeof(*b));
	pid_t pid;

	pid = profile_and_fork(buf);
	if (pid == 0) {
		kill(d.pid, SIGSTOP);
		loop_for(1, 100 * TICKS_PERIOD_NS);
		__atomic_store_n(&b->pid, 1, __ATOMIC_SEQ_CST);
		if (profil_sync())
			_exit(1);
		memcpy(b->seen, buf, sizeof(b->seen));
		_exit(0);
	}
	await_connecting(pid, b);
	kill(d.pid, SIGCONT);
	reap(pid);
	cr_expect_gt(b->seen[1], 0, "the child");
	cr_expect_eq(strays(b->seen, 1, 1, 1), 0);
}

/* Two such buffers do not fit into one chunk, so the daemon makes one for the child's. */
#define MOST_OF_A_CHUNK (PROFIL_CHUNK_COUNTERS / 4 * 3)

static unsigned int sum_of(const unsigned short *counts, size_t n)
{
	unsigned int sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += counts[i];
	return sum;
}

Test(kernel_fork, a_child_that_waits_for_its_counters_loses_no_tick)
{
	static unsigned short large[MOST_OF_A_CHUNK];
	struct both *b = forks_memory(sizeof(*b));
	struct profil_msg_status before, after;
	struct profil_msg_profile p;
	pid_t pid;

	cr_assert_eq(profil(large, sizeof(large), loop_at(0), 65536), 0, "profil: %s",
		     strerror(errno));
	client_status(&d, &before);
	pid = fork_now();
	if (pid == 0) {
		CHILD_SPINS(1, ticks_list(&d, getpid(), &p) && p.total > p.unmatched);
		if (!ticks_list(&d, getpid(), &p) || profil_sync())
			_exit(1);
		client_status(&d, &after);
		b->buf[0] = (unsigned short)after.chunks;
		_exit(p.lost || p.total > sum_of(large, MOST_OF_A_CHUNK) + p.unmatched ? 2 : 0);
	}
	reap(pid);
	cr_expect_gt(b->buf[0], before.chunks, "the child's counters had room in %u chunks",
		     before.chunks);
}

Test(kernel_fork, a_childs_stop_ends_its_own_profile_only)
{
	struct both *b = forks_memory(sizeof(*b));
	pid_t pid;

	pid = profile_and_fork(buf);
	if (pid == 0) {
		CHILD_SPINS(1, TICKS_SYNCED(buf[1]));
		if (sprofil(NULL, 0, NULL, 0))
			_exit(1);
		loop_for(2, 50 * MS); /* no event: it is off */
		memcpy(b->seen, buf, sizeof(b->seen));
		_exit(0);
	}
	reap(pid);
	TICKS_SPIN(0, TICKS_SYNCED(buf[0]));
	sync_now();
	cr_expect_gt(b->seen[1], 0, "the child");
	cr_expect_eq(strays(b->seen, 1, 1, 1), 0, "ticks after the child's stop");
	cr_expect_gt(buf[0], 0, "the parent");
	cr_expect_eq(strays(buf, 0, 0, 0), 0, "the parent's buffer has ticks of its child's");
}

Test(kernel_fork, a_daemonized_process_keeps_counting)
{
	struct both *b = forks_memory(sizeof(*b));
	int gate[2];
	char end;
	pid_t pid;

	cr_assert_eq(pipe(gate), 0);
	pid = fork_now();
	if (pid == 0) {
		if (ticks_profile(buf))
			_exit(1);
		CHILD_SPINS(0, TICKS_SYNCED(buf[0]));
		pid = fork();
		if (pid)
			_exit(pid < 0);
		if (setsid() < 0 || fork())
			_exit(0);
		close(gate[0]);
		CHILD_SPINS(1, TICKS_SYNCED(buf[1]));
		if (profil_sync() == 0)
			memcpy(b->seen, buf, sizeof(b->seen));
		_exit(0);
	}
	close(gate[1]);
	reap(pid);
	cr_assert_eq(read(gate[0], &end, 1), 0); /* the grandchild has exited */
	cr_expect_gt(b->seen[1], 0, "the grandchild");
	cr_expect_geq(b->seen[0], 1, "it has not inherited the counts");
	cr_expect_eq(strays(b->seen, 0, 1, 1), 0);
	profiles_are_over();
}

/* --- shared memory ---------------------------------------------------------------------------- */

/* Without a sync, which expect_both() makes. */
static int clone_child(void *arg)
{
	struct both *b = arg;

	return !TICKS_SPUN(1, WRITTEN(b->buf[1]));
}

static pid_t clone_now(int (*fn)(void *), struct both *b, int flags)
{
	char *stack = forks_memory(STACK_BYTES);
	pid_t pid = clone(fn, stack + STACK_BYTES, flags | SIGCHLD, b);

	cr_assert(pid > 0, "clone: %s", strerror(errno));
	return pid;
}

/* Expects the ticks of both, and no others. */
static void expect_both(const struct both *b)
{
	sync_now();
	cr_expect_gt(b->buf[1], 0, "the child");
	cr_expect_gt(b->buf[0], 0, "the parent");
	cr_expect_eq(ticks_conserved(&d, b->buf[0] + b->buf[1]), 0);
}

Test(kernel_fork, a_vfork_child_counts_where_its_parent_does)
{
	struct both *b = forks_memory(sizeof(*b));

	forks_profile(b->buf);
	reap(clone_now(clone_child, b, CLONE_VM | CLONE_VFORK));
	TICKS_SPIN(0, TICKS_SYNCED(b->buf[0]));
	expect_both(b);
}

Test(kernel_fork, processes_in_one_memory_add_to_the_same_counters)
{
	struct both *b = forks_memory(sizeof(*b));
	pid_t pid;

	forks_profile(b->buf);
	pid = clone_now(clone_child, b, CLONE_VM);
	TICKS_SPIN(0, WRITTEN(b->buf[0]));
	reap(pid);
	expect_both(b);
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
	profiles_are_over();
}

static int clone_orphan(void *arg)
{
	struct both *b = arg;
	char end;

	/* Reads the end of the file when the test closes the gate, after the parent has exited. */
	if (read(b->gate, &end, 1) != 0)
		return 1;
	return !TICKS_SPUN(1, TICKS_SYNCED(b->buf[1])) || profil_sync();
}

Test(kernel_fork, a_process_keeps_counting_after_another_in_its_memory_has_exited)
{
	struct both *b = forks_memory(sizeof(*b));
	int gate[2], alive[2];
	char end;
	pid_t pid;

	cr_assert(pipe(gate) == 0 && pipe(alive) == 0);
	b->gate = gate[0];
	pid = fork_now();
	if (pid == 0) {
		close(alive[0]);
		close(gate[1]);
		if (ticks_profile(b->buf))
			_exit(1);
		clone_now(clone_orphan, b, CLONE_VM);
		_exit(0);
	}
	close(alive[1]);
	reap(pid);
	cr_expect_eq(b->buf[1], 0);
	close(gate[1]);
	cr_assert_eq(read(alive[0], &end, 1), 0);
	cr_expect_gt(b->buf[1], 0, "the remaining process");
	cr_expect_eq(strays(b->buf, 1, 1, 1), 0);
	profiles_are_over();
}

Test(kernel_fork, posix_spawn_leaves_the_parents_profile_alone)
{
	char name[] = "true", *argv[] = { name, NULL }, *env[] = { NULL };
	struct profil_msg_profile p;
	pid_t pid;

	forks_profile(buf);
	cr_assert_eq(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, env), 0);
	reap(pid);
	TICKS_SPIN(0, TICKS_SYNCED(buf[0]));
	cr_expect_eq(ticks_conserved(&d, buf[0]), 0);
	cr_expect(!ticks_list(&d, pid, &p), "the spawned process has a profile");
}

/* --- threads ---------------------------------------------------------------------------------- */

/* The main thread is a zombie once it has exited, as long as other threads run. */
static void await_zombie(void)
{
	if (!await_state(getpid(), getpid(), 'Z'))
		_exit(9);
}

/* The main thread exits; @fn runs in another. */
static void lose_leader(void *(*fn)(void *), void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, arg))
		_exit(9);
	syscall(SYS_exit, 0);
}

static void *count_leaderless(void *arg)
{
	struct both *b = arg;

	await_zombie();
	CHILD_SPINS(1, TICKS_SYNCED(b->buf[1]));
	_exit(profil_sync() != 0);
}

Test(kernel_fork, a_process_without_its_leader_keeps_counting)
{
	struct both *b = forks_memory(sizeof(*b));
	pid_t pid = fork_now();

	if (pid == 0) {
		if (ticks_profile(b->buf))
			_exit(1);
		lose_leader(count_leaderless, b);
	}
	reap(pid);
	cr_expect_gt(b->buf[1], 0, "the remaining thread");
	cr_expect_eq(strays(b->buf, 1, 1, 1), 0);
	profiles_are_over();
}

static void *start_leaderless(void *arg)
{
	struct both *b = arg;
	pid_t pid;

	await_zombie();
	if (ticks_profile(b->buf))
		_exit(1);
	CHILD_SPINS(1, TICKS_SYNCED(b->buf[1]));
	pid = fork();
	if (pid == 0) {
		CHILD_SPINS(2, TICKS_SYNCED(b->buf[2]));
		_exit(profil_sync() != 0);
	}
	_exit(pid < 0 || waitpid(pid, NULL, 0) != pid || profil_sync());
}

Test(kernel_fork, a_process_without_its_leader_can_start_a_profile_and_fork)
{
	struct both *b = forks_memory(sizeof(*b));
	pid_t pid = fork_now();

	if (pid == 0)
		lose_leader(start_leaderless, b);
	reap(pid);
	cr_expect_gt(b->buf[1], 0, "the remaining thread");
	cr_expect_gt(b->buf[2], 0, "its child");
	cr_expect_eq(strays(b->buf, 1, 2, 2), 0);
	profiles_are_over();
}

#define THREADS 4
#define FORKS 40

static unsigned short busy_buf[LOOPS];
static volatile int busy_end;

static void *busy(void *arg)
{
	while (!busy_end) {
		loop_for((unsigned int)(uintptr_t)arg, TICKS_PERIOD_NS);
		if (profil_sync())
			return arg;
	}
	return NULL;
}

/* The child has one thread, whose ticks alone may change its copy of the buffer. */
static int alone(void)
{
	unsigned short before[LOOPS];

	memcpy(before, busy_buf, sizeof(before));
	CHILD_SPINS(0, TICKS_SYNCED(busy_buf[0]) > before[0]);
	if (profil_sync())
		return 1;
	return memcmp(before + 1, busy_buf + 1, sizeof(before) - sizeof(before[0])) ? 2 : 0;
}

Test(kernel_fork, the_child_of_a_threaded_process_counts_by_itself)
{
	pthread_t thread[THREADS];
	void *failed;

	forks_profile(busy_buf);
	for (uintptr_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, busy, (void *)(i + 1)), 0);
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork_now();

		if (pid == 0)
			_exit(alone());
		reap(pid);
	}
	busy_end = 1;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &failed);
		cr_expect(!failed, "profil_sync failed in a thread");
	}
}
