/* kernel_fork_time.c - the counts of processes that fork, share memory or lose their leader are
 * their CPU time */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/profil.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/shared_maps.h"
#include "tests/lib/kernel_ticks.h"
#include "profil.h"
#include "tests/lib/state.h"

#define MS 1000000ull
#define STACK_BYTES 65536

DAEMON_SUITE(kernel_fork_time, "--rate", TICKS_RATE);

/* Maps memory that forks share. */
static void *shared(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert(at != MAP_FAILED, "mmap: %s", strerror(errno));
	return at;
}

static void profile_into(unsigned short *buf)
{
	cr_assert_eq(ticks_profile(buf), 0, "profil: %s", strerror(errno));
}

static void sync_now(void)
{
	cr_assert_eq(profil_sync(), 0, "profil_sync: %s", strerror(errno));
}

static void add_time(struct loop_time *sum, const struct loop_time *t)
{
	sum->cpu_ns += t->cpu_ns;
	sum->task_ns += t->task_ns;
}

static pid_t fork_now(void)
{
	pid_t pid = fork();

	cr_assert(pid >= 0, "fork: %s", strerror(errno));
	return pid;
}

/* The child must exit with 0. */
static void reap(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid, "waitpid: %s", strerror(errno));
	cr_expect_eq(status, 0, "process %d ended with wait status 0x%x", (int)pid, status);
}

/* The kernel ends a profile with its last process; the daemon notices in its next drain. */
static void profiles_are_over(void)
{
	ticks_await_profiles(&d, 0);
}

/* --- a tree ----------------------------------------------------------------------------------- */

#define DEPTH 5
#define WIDTH 4
#define NODES (1 + 4 + 16 + 64 + 256 + 1024)
#define NODE_NS (5 * MS)

/* So many processes work at a time: with a thousand the daemon would answer too late. */
#define WORKERS 32

/* The results of one process of the tree. */
struct node {
	struct loop_time spent;
	unsigned int own;	/* ticks in its loop, since it was forked */
	unsigned int inherited; /* ticks in its parent's loop when it was forked */
	unsigned int strays;	/* other loops whose ticks changed after the fork */
	int slow_fork;		/* its parent's fork() took SLOW_FORK_S: it inherits what it gets */
	int sync_errno;
	int done;
};

/* libprofil's fork handler waits for the daemon as long at most. */
#define SLOW_FORK_S 1

static struct node *tree;
static int tickets[2]; /* a byte for each process that may begin */
static unsigned short tree_buf[LOOPS];

/* Siblings and ancestors have loops of their own. */
static unsigned int loop_of(unsigned int i, unsigned int depth)
{
	return i ? 1 + (depth - 1) * WIDTH + (i - 1) % WIDTH : 0;
}

/* Forks @child, and measures how long that takes. */
static pid_t fork_node(struct node *child)
{
	uint64_t began = cpu_ns(CLOCK_MONOTONIC);
	pid_t pid = fork();

	if (pid > 0)
		child->slow_fork = cpu_ns(CLOCK_MONOTONIC) - began >= SLOW_FORK_S * 1000 * MS;
	return pid;
}

/* Works, forks its children and waits for them. Returns 1 when all of them have succeeded. */
static int grow(unsigned int i, unsigned int depth, unsigned int parents_loop)
{
	unsigned int loop = loop_of(i, depth);
	unsigned short before[LOOPS];
	struct node *n = &tree[i];
	int ok = 1, status;
	pid_t pid[WIDTH];
	char ticket;

	ok &= read(tickets[0], &ticket, 1) == 1;
	memcpy(before, tree_buf, sizeof(before));
	n->inherited = before[parents_loop];
	loop_timed(&n->spent, loop, NODE_NS);
	for (unsigned int k = 0; k < WIDTH && depth < DEPTH; k++) {
		pid[k] = fork_node(&tree[i * WIDTH + 1 + k]);
		if (pid[k] == 0)
			_exit(!grow(i * WIDTH + 1 + k, depth + 1, loop));
	}
	n->sync_errno = profil_sync() ? errno : 0;
	n->own = tree_buf[loop] - before[loop];
	for (unsigned int k = 0; k < LOOPS; k++)
		n->strays += k != loop && tree_buf[k] != before[k];
	n->done = 1;
	ok &= write(tickets[1], "", 1) == 1;
	for (unsigned int k = 0; k < WIDTH && depth < DEPTH; k++)
		ok &= pid[k] > 0 && waitpid(pid[k], &status, 0) == pid[k] && status == 0;
	return ok;
}

/*
 * A process makes its 5 ticks in one or two slices, each with up to half a tick more or less, and
 * loses some when the whole machine stops; it has at least one. All make 6,820, with a standard
 * deviation of 26: 2 % are five of those.
 */
Test(kernel_fork_time, each_process_of_a_tree_has_its_own_counts, .timeout = 300)
{
	struct loop_time all = { 0, 0 };
	unsigned long ticks = 0;

	char all_tickets[WORKERS] = "";

	tree = shared(NODES * sizeof(*tree));
	cr_assert_eq(pipe(tickets), 0);
	cr_assert_eq(write(tickets[1], all_tickets, WORKERS), WORKERS);
	profile_into(tree_buf);
	cr_expect(grow(0, 0, LOOPS - 1), "a fork or a forked process failed");
	for (unsigned int i = 0; i < NODES; i++) {
		const struct node *n = &tree[i];

		cr_assert(n->done, "process %u of %u did not finish", i, NODES);
		cr_expect_eq(n->sync_errno, 0, "profil_sync in process %u: %s", i,
			     strerror(n->sync_errno));
		cr_expect_eq(n->strays, 0, "process %u has ticks in %u loops of others", i,
			     n->strays);
		cr_expect(!i || n->slow_fork || n->inherited == tree[(i - 1) / WIDTH].own,
			  "process %u inherited %u ticks from its parent, which has %u", i,
			  n->inherited, tree[(i - 1) / WIDTH].own);
		cr_expect_geq(n->own, 1, "process %u has no tick", i);
		ticks_expect(n->own, &n->spent, TICKS_PERIOD_NS, 100, 6, "a process");
		add_time(&all, &n->spent);
		ticks += n->own;
	}
	ticks_expect(ticks, &all, TICKS_PERIOD_NS, 2, 0, "the tree");
}

/* --- one fork --------------------------------------------------------------------------------- */

struct both {
	unsigned short buf[LOOPS];
	unsigned short seen[LOOPS]; /* the child's private buffer at its end */
	struct loop_time child;
	struct loop_time shared;
	pid_t pid;
};

Test(kernel_fork_time, a_shared_buffer_gets_the_ticks_of_both)
{
	struct both *b = shared(sizeof(*b));
	struct loop_time parent = { 0, 0 };
	pid_t pid;

	profile_into(b->buf);
	pid = fork_now();
	if (pid == 0) {
		loop_timed(&b->child, 1, 100 * MS);
		loop_timed(&b->shared, 2, 50 * MS);
		_exit(profil_sync() != 0);
	}
	loop_timed(&parent, 0, 100 * MS);
	reap(pid);
	loop_timed(&b->shared, 2, 50 * MS);
	sync_now();
	ticks_expect_100(b->buf[0], &parent, "the parent");
	ticks_expect_100(b->buf[1], &b->child, "the child");
	ticks_expect_100(b->buf[2], &b->shared, "both in one loop");
}

/* Waits until @pid, which sets @b->pid before its request, sleeps until the daemon answers. */
static void await_connecting(pid_t pid, struct both *b)
{
	while (!__atomic_load_n(&b->pid, __ATOMIC_SEQ_CST))
		sched_yield();
	cr_assert(await_state(pid, pid, 'S'), "process %d has ended", (int)pid);
}

/* The daemon is stopped until the request is queued: it has not seen any tick of the child before.
 */
Test(kernel_fork_time, a_childs_first_request_gets_its_first_ticks)
{
	static unsigned short buf[LOOPS];
	struct both *b = shared(sizeof(*b));
	pid_t pid;

	profile_into(buf);
	pid = fork_now();
	if (pid == 0) {
		kill(d.pid, SIGSTOP);
		loop_timed(&b->child, 1, 100 * MS);
		__atomic_store_n(&b->pid, 1, __ATOMIC_SEQ_CST);
		if (profil_sync())
			_exit(1);
		memcpy(b->seen, buf, sizeof(b->seen));
		_exit(0);
	}
	await_connecting(pid, b);
	kill(d.pid, SIGCONT);
	reap(pid);
	ticks_expect_100(b->seen[1], &b->child, "the child");
}

/* Two such buffers do not fit into one chunk, so the daemon makes one for the child's. */
#define MOST_OF_A_CHUNK (PROFIL_CHUNK_COUNTERS / 4 * 3)

static unsigned int ticks_of_loop(const unsigned short *buf, unsigned int loop)
{
	size_t first = (loop_at(loop) - loop_at(0)) / sizeof(*buf);
	unsigned int sum = 0;

	for (size_t i = first; i < first + LOOP_BYTES / sizeof(*buf); i++)
		sum += buf[i];
	return sum;
}

Test(kernel_fork_time, a_child_that_waits_for_its_counters_loses_no_tick)
{
	static unsigned short buf[MOST_OF_A_CHUNK];
	struct both *b = shared(sizeof(*b));
	struct profil_msg_status before, after;
	pid_t pid;

	cr_assert_eq(profil(buf, sizeof(buf), loop_at(0), 65536), 0, "profil: %s", strerror(errno));
	client_status(&d, &before);
	pid = fork_now();
	if (pid == 0) {
		loop_timed(&b->child, 1, 100 * MS);
		if (profil_sync())
			_exit(1);
		client_status(&d, &after);
		b->buf[0] = (unsigned short)after.chunks;
		b->seen[1] = (unsigned short)ticks_of_loop(buf, 1);
		_exit(0);
	}
	reap(pid);
	cr_expect_gt(b->buf[0], before.chunks, "the child's counters had room in %u chunks",
		     before.chunks);
	ticks_expect_100(b->seen[1], &b->child, "the child");
}

Test(kernel_fork_time, a_childs_stop_ends_its_own_profile_only)
{
	static unsigned short buf[LOOPS];
	struct both *b = shared(sizeof(*b));
	struct loop_time parent = { 0, 0 };
	pid_t pid;

	profile_into(buf);
	pid = fork_now();
	if (pid == 0) {
		loop_timed(&b->child, 1, 100 * MS);
		if (sprofil(NULL, 0, NULL, 0))
			_exit(1);
		loop_timed(&b->shared, 2, 50 * MS);
		memcpy(b->seen, buf, sizeof(b->seen));
		_exit(0);
	}
	reap(pid);
	loop_timed(&parent, 0, 100 * MS);
	sync_now();
	ticks_expect_100(b->seen[1], &b->child, "the child");
	cr_expect_eq(b->seen[2], 0, "%u ticks after the child's stop", b->seen[2]);
	ticks_expect_100(buf[0], &parent, "the parent");
	cr_expect_eq(buf[1] | buf[2], 0, "the parent's buffer has ticks of its child's");
}

/* Two forks whose parents exit, with setsid(), as many daemons do. */
Test(kernel_fork_time, a_daemonized_process_keeps_counting)
{
	static unsigned short buf[LOOPS];
	struct both *b = shared(sizeof(*b));
	int gate[2];
	char end;
	pid_t pid;

	cr_assert_eq(pipe(gate), 0);
	pid = fork_now();
	if (pid == 0) {
		struct loop_time s = { 0, 0 };

		if (ticks_profile(buf))
			_exit(1);
		loop_timed(&s, 0, 10 * MS);
		pid = fork();
		if (pid)
			_exit(pid < 0);
		if (setsid() < 0 || fork())
			_exit(0);
		close(gate[0]);
		loop_timed(&b->child, 1, 100 * MS);
		if (profil_sync() == 0)
			memcpy(b->seen, buf, sizeof(b->seen));
		_exit(0);
	}
	close(gate[1]);
	reap(pid);
	cr_assert_eq(read(gate[0], &end, 1), 0); /* the grandchild has exited */
	ticks_expect_100(b->seen[1], &b->child, "the grandchild");
	cr_expect_geq(b->seen[0], 1, "it has not inherited the counts");
	profiles_are_over();
}

/* --- shared memory ---------------------------------------------------------------------------- */

static struct both *clone_both;

static int clone_child(void *arg)
{
	(void)arg;
	loop_timed(&clone_both->child, 1, 100 * MS);
	return 0;
}

static pid_t clone_now(int (*fn)(void *), int flags)
{
	char *stack = shared(STACK_BYTES);
	pid_t pid = clone(fn, stack + STACK_BYTES, flags | SIGCHLD, NULL);

	cr_assert(pid > 0, "clone: %s", strerror(errno));
	return pid;
}

Test(kernel_fork_time, a_vfork_child_counts_where_its_parent_does)
{
	static unsigned short buf[LOOPS];
	struct loop_time parent = { 0, 0 };

	clone_both = shared(sizeof(*clone_both));
	profile_into(buf);
	reap(clone_now(clone_child, CLONE_VM | CLONE_VFORK));
	loop_timed(&parent, 0, 100 * MS);
	sync_now();
	ticks_expect_100(buf[1], &clone_both->child, "the child");
	ticks_expect_100(buf[0], &parent, "the parent");
}

/* IRIX's sproc() */
Test(kernel_fork_time, processes_in_one_memory_add_to_the_same_counters)
{
	static unsigned short buf[LOOPS];
	struct loop_time parent = { 0, 0 };
	pid_t pid;

	clone_both = shared(sizeof(*clone_both));
	profile_into(buf);
	pid = clone_now(clone_child, CLONE_VM);
	loop_timed(&parent, 0, 100 * MS);
	reap(pid);
	sync_now();
	ticks_expect_100(buf[1], &clone_both->child, "the child");
	ticks_expect_100(buf[0], &parent, "the parent");
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
	profiles_are_over();
}

static int clone_orphan(void *arg)
{
	char end;

	(void)arg;
	/* Reads the end of the file when the test closes the gate, after the parent has exited. */
	if (read(clone_both->pid, &end, 1) != 0)
		return 1;
	loop_timed(&clone_both->child, 1, 100 * MS);
	return profil_sync();
}

Test(kernel_fork_time, a_process_keeps_counting_after_another_in_its_memory_has_exited)
{
	int gate[2], alive[2];
	char end;
	pid_t pid;

	clone_both = shared(sizeof(*clone_both));
	cr_assert(pipe(gate) == 0 && pipe(alive) == 0);
	clone_both->pid = gate[0];
	pid = fork_now();
	if (pid == 0) {
		close(alive[0]);
		close(gate[1]);
		if (ticks_profile(clone_both->buf))
			_exit(1);
		clone_now(clone_orphan, CLONE_VM);
		_exit(0);
	}
	close(alive[1]);
	reap(pid);
	cr_expect_eq(clone_both->buf[1], 0);
	close(gate[1]);
	cr_assert_eq(read(alive[0], &end, 1), 0);
	ticks_expect_100(clone_both->buf[1], &clone_both->child, "the remaining process");
	profiles_are_over();
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
	loop_timed(&b->child, 1, 100 * MS);
	_exit(profil_sync() != 0);
}

Test(kernel_fork_time, a_process_without_its_leader_keeps_counting)
{
	struct both *b = shared(sizeof(*b));
	pid_t pid = fork_now();

	if (pid == 0) {
		if (ticks_profile(b->buf))
			_exit(1);
		lose_leader(count_leaderless, b);
	}
	reap(pid);
	ticks_expect_100(b->buf[1], &b->child, "the remaining thread");
	profiles_are_over();
}

static void *start_leaderless(void *arg)
{
	struct both *b = arg;
	pid_t pid;

	await_zombie();
	if (ticks_profile(b->buf))
		_exit(1);
	loop_timed(&b->child, 1, 100 * MS);
	pid = fork();
	if (pid == 0) {
		loop_timed(&b->shared, 2, 50 * MS);
		_exit(profil_sync() != 0);
	}
	_exit(pid < 0 || waitpid(pid, NULL, 0) != pid || profil_sync());
}

Test(kernel_fork_time, a_process_without_its_leader_can_start_a_profile_and_fork)
{
	struct both *b = shared(sizeof(*b));
	pid_t pid = fork_now();

	if (pid == 0)
		lose_leader(start_leaderless, b);
	reap(pid);
	ticks_expect_100(b->buf[1], &b->child, "the remaining thread");
	ticks_expect(b->buf[2], &b->shared, TICKS_PERIOD_NS, 10, 12, "its child");
	profiles_are_over();
}

#define THREADS 4
#define FORKS 40

static unsigned short busy_buf[LOOPS];
static volatile int busy_end;

static void *busy(void *arg)
{
	struct loop_time s = { 0, 0 };

	while (!busy_end) {
		loop_timed(&s, (unsigned int)(uintptr_t)arg, MS);
		if (profil_sync())
			return arg;
	}
	return NULL;
}

/* The child has one thread, whose ticks alone may change its copy of the buffer. */
static int alone(struct loop_time *s, unsigned int *ticks)
{
	unsigned short before[LOOPS];

	memcpy(before, busy_buf, sizeof(before));
	loop_timed(s, 0, 10 * MS);
	if (profil_sync())
		return 1;
	*ticks = busy_buf[0] - before[0];
	return memcmp(before + 1, busy_buf + 1, sizeof(before) - sizeof(before[0])) ? 2 : 0;
}

/*
 * Each child makes 10 ticks in some 5 slices, all of them 400, with a standard deviation of 7: 5 %
 * and 25 ticks are six of those.
 */
Test(kernel_fork_time, the_child_of_a_threaded_process_counts_by_itself)
{
	struct loop_time *s = shared(sizeof(*s)), all = { 0, 0 };
	unsigned int *ticks = shared(sizeof(*ticks)), sum = 0;
	pthread_t thread[THREADS];
	void *failed;

	profile_into(busy_buf);
	for (uintptr_t i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, busy, (void *)(i + 1)), 0);
	for (int i = 0; i < FORKS; i++) {
		pid_t pid;

		*s = (struct loop_time){ 0, 0 };
		pid = fork_now();
		if (pid == 0)
			_exit(alone(s, ticks));
		reap(pid);
		add_time(&all, s);
		sum += *ticks;
	}
	busy_end = 1;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &failed);
		cr_expect(!failed, "profil_sync failed in a thread");
	}
	ticks_expect(sum, &all, TICKS_PERIOD_NS, 5, 25, "the children");
}
