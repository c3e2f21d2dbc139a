/* processes.c - samples of processes that fork, execute and end; the quotas of children and pcs */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/profil.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "profil.h"
#include "synthetic.h"

SYNTHETIC_SUITE(synth_processes, false);

#define BASE 0x10000000ul
#define COUNTERS 16

static uint16_t buf[COUNTERS];

static void start_profile(void)
{
	cr_assert_eq(profil(buf, sizeof(buf), BASE, 0x10000), 0, "profil: %s", strerror(errno));
}

static int stop_profile(void)
{
	return sprofil(NULL, 0, NULL, 0);
}

/* --- a child that says what its buffer has ---------------------------------------------------- */

/* In memory that it shares with the test. */
struct report {
	int err; /* errno of its profil_sync() */
	uint16_t buf[COUNTERS];
};

struct child {
	pid_t pid;
	int ask;    /* a byte from the test, its end when the child shall exit, ... */
	int answer; /* ... and one from the child, when @report is complete */
	struct report *report;
};

static void child_run(struct report *report, int ask, int answer)
{
	char byte;

	while (read(ask, &byte, 1) == 1) {
		report->err = profil_sync() ? errno : 0;
		memcpy(report->buf, buf, sizeof(buf));
		if (write(answer, "", 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static void child_fork(struct child *c)
{
	int ask[2], answer[2];

	c->report = mmap(NULL, sizeof(*c->report), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(c->report != MAP_FAILED && !pipe(ask) && !pipe(answer));
	c->pid = fork();
	cr_assert_geq(c->pid, 0);
	if (!c->pid) {
		close(ask[1]);
		child_run(c->report, ask[0], answer[1]);
	}
	close(ask[0]);
	close(answer[1]);
	c->ask = ask[1];
	c->answer = answer[0];
}

/* What the child's buffer has after a profil_sync(), which must succeed. */
static const struct report *child_report(const struct child *c)
{
	char byte;

	cr_assert_eq(write(c->ask, "", 1), 1);
	cr_assert_eq(read(c->answer, &byte, 1), 1, "the child has ended");
	cr_expect_eq(c->report->err, 0, "profil_sync: %s", strerror(c->report->err));
	return c->report;
}

static void child_end(struct child *c)
{
	int status;

	close(c->ask);
	cr_assert_eq(waitpid(c->pid, &status, 0), c->pid);
	cr_expect_eq(status, 0, "the child ended with wait status %#x", status);
	close(c->answer);
	munmap(c->report, sizeof(*c->report));
}

static bool is_unbound(pid_t pid)
{
	return synthetic_entry(&s, pid) & PROFIL_ENTRY_UNBOUND;
}

/* --- many processes --------------------------------------------------------------------------- */

#define PROCESSES 32

/* Profiles into @own until the pipe @gate ends. */
static void process_run(uint16_t own[PROCESSES], int begun, int gate)
{
	char end;

	if (profil(own, PROCESSES * sizeof(*own), BASE, 0x10000) || write(begun, "", 1) != 1 ||
	    read(gate, &end, 1))
		_exit(1);
	_exit(sprofil(NULL, 0, NULL, 0) != 0);
}

Test(synth_processes, each_of_32_has_its_own_samples)
{
	uint16_t(*own)[PROCESSES] = mmap(NULL, PROCESSES * sizeof(*own), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[PROCESSES];
	int begun[2], gate[2], status;
	char byte;

	cr_assert(own != MAP_FAILED && !pipe(begun) && !pipe(gate));
	for (unsigned int i = 0; i < PROCESSES; i++) {
		pid[i] = fork();
		cr_assert_geq(pid[i], 0);
		if (!pid[i]) {
			close(gate[1]);
			process_run(own[i], begun[1], gate[0]);
		}
	}
	for (unsigned int i = 0; i < PROCESSES; i++)
		cr_assert_eq(read(begun[0], &byte, 1), 1);
	for (unsigned int i = 0; i < PROCESSES; i++)
		synthetic_hit(&s, pid[i], BASE + 2 * i, i + 1);
	close(gate[1]);
	for (unsigned int i = 0; i < PROCESSES; i++) {
		cr_assert_eq(waitpid(pid[i], &status, 0), pid[i]);
		cr_expect_eq(status, 0, "process %u ended with wait status %#x", i, status);
		for (unsigned int k = 0; k < PROCESSES; k++)
			cr_expect_eq(own[i][k], k == i ? i + 1 : 0,
				     "counter %u of process %u is %u", k, i, own[i][k]);
	}
}

/* --- fork ------------------------------------------------------------------------------------- */

/*
 * The daemon is stopped until the child has samples: they are pcs in the ring. The first binds the
 * child to counters of its own. The child's buffer begins as a copy of its parent's.
 */
Test(synth_processes, a_fork_child_has_its_samples_from_before_and_after_it_is_bound)
{
	struct profil_msg_profile p;
	struct child c;

	start_profile();
	synthetic_hit(&s, getpid(), BASE, 3);
	cr_assert_eq(profil_sync(), 0);
	child_fork(&c);
	cr_assert_eq(kill(d.pid, SIGSTOP), 0);
	cr_expect(is_unbound(c.pid));
	synthetic_hit(&s, c.pid, BASE, 5);
	synthetic_hit(&s, c.pid, BASE + 2, 1);
	synthetic_hit(&s, c.pid, BASE + 2 * COUNTERS, 2); /* in no region */
	cr_assert_eq(kill(d.pid, SIGCONT), 0);
	SYNTHETIC_AWAIT(!is_unbound(c.pid));
	synthetic_hit(&s, c.pid, BASE, 7);
	synthetic_hit(&s, getpid(), BASE, 1);

	cr_expect_eq(child_report(&c)->buf[0], 3 + 5 + 7, "%u", c.report->buf[0]);
	cr_expect_eq(c.report->buf[1], 1, "%u", c.report->buf[1]);
	synthetic_list(&d, c.pid, &p);
	cr_expect_eq(p.total, 5 + 1 + 2 + 7, "total %llu", p.total);
	cr_expect_eq(p.unmatched, 2, "unmatched %llu", p.unmatched);
	cr_expect_eq(p.lost, 0, "lost %llu", p.lost);
	cr_assert_eq(stop_profile(), 0);
	cr_expect_eq(buf[0], 3 + 1, "the parent has %u", buf[0]);
	child_end(&c);
}

/* Fills @n places of bucket @which of @pid with entries of no process. */
static struct profil_bucket *crowd(pid_t pid, unsigned int which, unsigned int n)
{
	struct profil_bucket *bucket = &s.tables->bucket[profil_bucket_of(
		(__u32)pid, s.object->rodata->bucket_seed, which)];

	for (unsigned int i = 0; i < n; i++) {
		cr_assert_eq(bucket->entry[i], 0, "the bucket is in use");
		bucket->entry[i] = profil_entry(0x7fffff00u + i, PROFIL_MAX_TARGETS - 1);
	}
	return bucket;
}

/* From the half of the first bucket on, an entry goes into the second. */
Test(synth_processes, a_process_in_its_second_bucket_counts_and_its_child_is_followed)
{
	struct profil_bucket *first = crowd(getpid(), 0, PROFIL_BUCKET_HALF);
	struct child c;

	start_profile();
	cr_expect_eq(s.tables->displaced, 1, "%u entries are displaced", s.tables->displaced);
	synthetic_hit(&s, getpid(), BASE, 3);
	cr_assert_eq(profil_sync(), 0);
	child_fork(&c);
	cr_assert(synthetic_entry(&s, c.pid), "the child is not followed");
	synthetic_hit(&s, c.pid, BASE, 4);
	SYNTHETIC_AWAIT(!is_unbound(c.pid));
	cr_expect_eq(child_report(&c)->buf[0], 3 + 4, "%u", c.report->buf[0]);
	child_end(&c);
	cr_assert_eq(stop_profile(), 0);
	cr_expect_eq(buf[0], 3);
	cr_expect_eq(s.tables->displaced, 0, "%u entries are displaced", s.tables->displaced);
	memset(first, 0, sizeof(*first));
}

Test(synth_processes, a_process_whose_first_bucket_is_full_counts)
{
	struct profil_bucket *first = crowd(getpid(), 0, PROFIL_BUCKET_ENTRIES);

	start_profile();
	synthetic_hit(&s, getpid(), BASE, 3);
	cr_assert_eq(stop_profile(), 0);
	cr_expect_eq(buf[0], 3, "%u", buf[0]);
	memset(first, 0, sizeof(*first));
}

/* --- exec and exit ---------------------------------------------------------------------------- */

/* A made-up child. */
#define CHILD 0x40000000u

/* exec_of() for the child's entry, which is not FOLLOW; twice it is in the child's second bucket.
 */
Test(synth_processes, an_exec_or_exit_removes_the_entry_and_its_charge)
{
	struct synth_exec exec = { .tgid = CHILD, .exec_id = 2 * PROFIL_ENTRY_EXEC_ID };
	struct synth_inherit fork = { .child = CHILD,
				      .bits = PROFIL_ENTRY_FORKED | PROFIL_ENTRY_UNBOUND |
					      PROFIL_ENTRY_EXEC_ID };
	struct profil_bucket *first = NULL;
	const struct profil_target *t;

	start_profile();
	t = synthetic_target(&s, getpid());
	fork.entry = synthetic_entry(&s, getpid());
	for (unsigned int way = 0; way < 4; way++) {
		if (way == 2)
			first = crowd(CHILD, 0, PROFIL_BUCKET_HALF);
		SYNTHETIC_RUN(&s, inherit, &fork);
		cr_expect(synthetic_entry(&s, CHILD));
		cr_expect_eq(t->members, 2);
		cr_expect_eq(s.tables->children, 1);
		cr_expect_eq(s.tables->displaced, first ? 1 : 0);
		if (way % 2)
			SYNTHETIC_RUN(&s, exit, &exec);
		else
			SYNTHETIC_RUN(&s, exec, &exec);
		cr_expect(!synthetic_entry(&s, CHILD));
		cr_expect_eq(t->members, 1, "way %u: %u members", way, t->members);
		cr_expect_eq(s.tables->children, 0, "%u children", s.tables->children);
		cr_expect_eq(s.tables->displaced, 0, "%u displaced", s.tables->displaced);
	}
	cr_expect_eq(t->ended, 0);
	memset(first, 0, sizeof(*first));
	cr_assert_eq(stop_profile(), 0);
}

/* The kernel has read an entry that the daemon or an exit removes before the kernel does. */
Test(synth_processes, an_entry_that_is_removed_already_is_not_discharged_again)
{
	struct synth_exec exit = { .tgid = CHILD };
	struct synth_inherit fork = { .child = CHILD,
				      .bits = PROFIL_ENTRY_FORKED | PROFIL_ENTRY_UNBOUND };
	struct synth_take_out again = { .at = 0 };
	const struct profil_target *t;

	start_profile();
	t = synthetic_target(&s, getpid());
	fork.entry = synthetic_entry(&s, getpid());
	SYNTHETIC_RUN(&s, inherit, &fork);
	again.entry = synthetic_entry(&s, CHILD);
	SYNTHETIC_RUN(&s, exit, &exit);
	SYNTHETIC_RUN(&s, take_out, &again);
	cr_expect_eq(t->members, 1, "%u members", t->members);
	cr_expect_eq(s.tables->children, 0, "%u children", s.tables->children);
	cr_expect_eq(t->ended, 0);
	cr_assert_eq(stop_profile(), 0);
}

Test(synth_processes, a_child_without_room_in_its_buckets_is_counted)
{
	struct synth_inherit fork = { .child = CHILD,
				      .bits = PROFIL_ENTRY_FORKED | PROFIL_ENTRY_UNBOUND };
	struct profil_bucket *first = crowd(CHILD, 0, PROFIL_BUCKET_CHILDREN);
	struct profil_bucket *second = crowd(CHILD, 1, PROFIL_BUCKET_CHILDREN - 1);
	const struct profil_target *t;

	start_profile();
	t = synthetic_target(&s, getpid());
	fork.entry = synthetic_entry(&s, getpid());
	for (unsigned int i = 0; i < 2; i++) {
		SYNTHETIC_RUN(&s, inherit, &fork); /* there is room for one */
		cr_expect_eq(s.tables->displaced, 1, "%u displaced", s.tables->displaced);
		cr_expect_eq(t->members, 2, "%u members", t->members);
		cr_expect_eq(t->unfollowed, i, "%llu unfollowed", t->unfollowed);
		cr_expect_eq(s.tables->children, 1, "%u children", s.tables->children);
	}
	memset(first, 0, sizeof(*first));
	memset(second, 0, (PROFIL_BUCKET_CHILDREN - 1) * sizeof(second->entry[0]));
	SYNTHETIC_RUN(&s, exit, &(struct synth_exec){ .tgid = CHILD });
	cr_expect_eq(s.tables->displaced, 0, "%u displaced", s.tables->displaced);
	cr_assert_eq(stop_profile(), 0);
}

/* The end of a target's last process is an event for the daemon, which sleeps without samples. */
Test(synth_processes, the_end_of_the_last_process_wakes_the_daemon)
{
	const volatile struct profil_target *t;
	const volatile __u8 *dirty;

	start_profile();
	t = synthetic_target(&s, getpid());
	dirty = &s.tables->dirty.target[t - s.tables->target];
	SYNTHETIC_AWAIT(!*dirty && s.tables->dirty.wakeup);
	cr_assert_eq(kill(d.pid, SIGSTOP), 0);
	SYNTHETIC_RUN(&s, exit, &(struct synth_exec){ .tgid = (__u32)getpid() });
	cr_expect_eq(t->members, 0, "%u members", t->members);
	cr_expect_eq(t->ended, 1);
	cr_assert_eq(*dirty, 1, "the target is not dirty");
	cr_expect_eq(s.tables->dirty.wakeup, 0, "no event was posted");
	cr_assert_eq(kill(d.pid, SIGCONT), 0);
	SYNTHETIC_AWAIT(!*dirty);
}

/* --- quotas ----------------------------------------------------------------------------------- */

#define CHILDREN 100
#define CHILDREN_MAX 64

/* Each child is a member or counted as unfollowed; one target may have half of its user's limit. */
Test(synth_processes, children_beyond_half_of_the_limit_are_counted)
{
	struct synth_inherit fork = { .bits = PROFIL_ENTRY_FORKED | PROFIL_ENTRY_UNBOUND };
	const struct profil_target *t;
	struct profil_user *user;

	start_profile();
	t = synthetic_target(&s, getpid());
	user = &s.tables->user[t->user];
	user->children_max = CHILDREN_MAX;
	fork.entry = synthetic_entry(&s, getpid());
	for (__u32 i = 1; i <= CHILDREN; i++) {
		fork.child = 0x40000000 + i;
		SYNTHETIC_RUN(&s, inherit, &fork);
		cr_assert_eq(t->members + t->unfollowed, 1 + i, "%u members, %llu unfollowed of %u",
			     t->members, t->unfollowed, i);
		cr_assert_eq(user->children, t->members - 1);
		cr_assert_eq(s.tables->children, t->members - 1);
	}
	cr_expect_eq(t->members, CHILDREN_MAX / 2, "%u members", t->members);
	for (__u32 i = 1; i <= CHILDREN; i++) {
		struct synth_exec exit = { .tgid = 0x40000000 + i };

		SYNTHETIC_RUN(&s, exit, &exit);
	}
	cr_expect_eq(t->members, 1, "%u members", t->members);
	cr_expect_eq(user->children, 0);
	cr_expect_eq(s.tables->children, 0);
	cr_assert_eq(stop_profile(), 0);
}

/* The whole table's limit, less the reserve that the user may not use. */
Test(synth_processes, children_of_all_users_leave_the_reserve)
{
	struct synth_inherit fork = { .bits = PROFIL_ENTRY_FORKED | PROFIL_ENTRY_UNBOUND };
	const struct profil_target *t;
	struct profil_user *user;

	start_profile();
	t = synthetic_target(&s, getpid());
	user = &s.tables->user[t->user];
	user->children_max = 1000;
	user->children_reserve = 100;
	s.tables->children = s.tables->children_max - user->children_reserve - 2;
	fork.entry = synthetic_entry(&s, getpid());
	for (__u32 i = 1; i <= 5; i++) {
		fork.child = 0x40000000 + i;
		SYNTHETIC_RUN(&s, inherit, &fork);
	}
	cr_expect_eq(t->unfollowed, 3, "%llu unfollowed", t->unfollowed);
	cr_expect_eq(t->members, 3, "%u members", t->members);
	for (__u32 i = 1; i <= 5; i++) {
		struct synth_exec exit = { .tgid = 0x40000000 + i };

		SYNTHETIC_RUN(&s, exit, &exit);
	}
	cr_expect_eq(s.tables->children, s.tables->children_max - user->children_reserve - 2);
	s.tables->children = 0;
	cr_assert_eq(stop_profile(), 0);
}

/* The samples of an unbound child are pcs in the ring, of which one user may have so many. */
Test(synth_processes, pcs_beyond_the_users_share_of_the_ring_are_lost)
{
	const unsigned int given = PROFIL_RAW_IN_FLIGHT + 952;
	const struct profil_target *t;
	struct profil_msg_profile p;
	struct child c;

	start_profile();
	t = synthetic_target(&s, getpid());
	child_fork(&c);
	cr_assert_eq(kill(d.pid, SIGSTOP), 0);
	for (unsigned int i = 0; i < given; i++) {
		synthetic_hit(&s, c.pid, BASE + 2 * (i % COUNTERS), 1);
		cr_assert_eq(t->total, t->raw + t->lost, "sample %u: %llu = %llu + %llu", i,
			     t->total, t->raw, t->lost);
	}
	cr_expect_eq(t->raw, PROFIL_RAW_IN_FLIGHT, "%llu pcs", t->raw);
	cr_expect_eq(t->lost, 952, "%llu lost", t->lost);
	cr_assert_eq(kill(d.pid, SIGCONT), 0);
	SYNTHETIC_AWAIT(!is_unbound(c.pid));
	for (int i = 0; i < COUNTERS; i++)
		cr_expect_eq(child_report(&c)->buf[i], PROFIL_RAW_IN_FLIGHT / COUNTERS,
			     "counter %d is %u", i, c.report->buf[i]);
	synthetic_list(&d, c.pid, &p);
	cr_expect_eq(p.total, PROFIL_RAW_IN_FLIGHT, "total %llu", p.total);
	child_end(&c);
	cr_assert_eq(stop_profile(), 0);
}

/* A sample that stands for many is posted as 32 pcs at most. */
Test(synth_processes, pcs_of_one_long_sample_are_limited)
{
	const struct profil_target *t;
	struct child c;

	start_profile();
	t = synthetic_target(&s, getpid());
	child_fork(&c);
	cr_assert_eq(kill(d.pid, SIGSTOP), 0);
	synthetic_hit(&s, c.pid, BASE, 40);
	cr_expect_eq(t->raw, 32, "%llu pcs", t->raw);
	cr_expect_eq(t->lost, 8, "%llu lost", t->lost);
	cr_assert_eq(kill(d.pid, SIGCONT), 0);
	SYNTHETIC_AWAIT(!is_unbound(c.pid));
	cr_expect_eq(child_report(&c)->buf[0], 32, "%u", c.report->buf[0]);
	child_end(&c);
	cr_assert_eq(stop_profile(), 0);
}
