/* kernel_observe_off_cpu.c - attachments that count the time that threads sleep */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clocks.h"
#include "tests/lib/actors.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/observer.h"
#include "tests/lib/state.h"
#include "tests/lib/users.h"

#define ALICE 61001
#define MS 1000000u

DAEMON_SUITE(kernel_observe_off_cpu, "--rate", TICKS_RATE);

static struct profil_msg_observe ask_off_cpu(enum profil_scope scope, __u64 period_ns)
{
	struct profil_msg_observe ask = observer_ask(scope, period_ns);

	ask.flags |= PROFIL_OBSERVE_EVENT;
	ask.event_type = PROFIL_EVENT_OFF_CPU;
	ask.stack_mode = PROFIL_STACK_AUTO;
	return ask;
}

/* A thread sleeps while it is moved to another CPU. */
static void move_to_cpu_0(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void spin(uint64_t ns)
{
	for (uint64_t end = now_ns() + ns; now_ns() < end;)
		;
}

struct rest {
	bool spins;
	unsigned int ms;
};

/* Writes the time that each rest took. */
static void rest(int go, int done, const void *arg)
{
	const struct rest *r = arg;
	const struct timespec ts = { r->ms / 1000, r->ms % 1000 * MS };
	uint64_t began, took = 0;
	char byte;

	if (r->spins)
		move_to_cpu_0();
	while (read(go, &byte, 1) == 1) {
		began = now_ns();
		if (r->spins)
			spin((uint64_t)r->ms * MS);
		else
			nanosleep(&ts, NULL);
		took = now_ns() - began;
		if (write(done, &took, sizeof(took)) != sizeof(took))
			break;
	}
}

/* A process that sleeps @ms, or spins for @ms on CPU 0, each time a byte tells it to. */
static struct actor sleeper(bool spins, unsigned int ms)
{
	return actor_fork(rest, &(struct rest){ spins, ms });
}

/* Returns when the sleeper waits for the next byte: its own state, not our clock, says so. */
static void await_rest(const struct actor *s)
{
	cr_assert(await_state(s->pid, s->pid, 'S'));
}

static uint64_t took(const struct actor *s)
{
	uint64_t ns;

	cr_assert(read(s->done, &ns, sizeof(ns)) == sizeof(ns));
	return ns;
}

/* Samples of the nodes of the tree. */
static uint64_t sum_of_nodes(const struct observer *o)
{
	const struct profil_table *t = o->table;
	uint64_t sum = t->stack_lost;

	for (uint32_t i = 0; i < t->nodes; i++) {
		const struct profil_node *page =
			(const void *)((const char *)t +
				       (size_t)(t->node_page + i / PROFIL_PAGE_NODES) *
					       PROFIL_TABLE_PAGE);

		sum += page[i % PROFIL_PAGE_NODES].count;
	}
	return sum;
}

static const struct profil_sleeper *sleepers_of(const struct observer *o)
{
	return (const void *)((const char *)o->table +
			      (size_t)o->table->sleeper_page * PROFIL_TABLE_PAGE);
}

static unsigned int asleep(const struct observer *o)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < o->table->sleepers; i++)
		n += sleepers_of(o)[i].tid && sleepers_of(o)[i].since_ns;
	return n;
}

/* --- counts ----------------------------------------------------------------------------------- */

/*
 * The time is between what was asked for and what the sleeper measured around it, which includes
 * more. Its first read() began before the attachment, so that it is not counted.
 */
Test(kernel_observe_off_cpu, a_sleep_is_counted_to_the_period)
{
	struct profil_msg_observe ask = ask_off_cpu(PROFIL_SCOPE_PROCESSES, 10000);
	struct actor s = sleeper(false, 300);
	uint64_t ns, n;
	struct observer o;

	await_rest(&s);
	cr_assert_eq(observer_open(&o, &d, &ask), 0);
	cr_assert_eq(observer_add(&o, s.pid), 0);
	actor_tell(&s);
	ns = took(&s);
	await_rest(&s);
	n = observer_sum(&o);
	cr_expect(n >= 29999 && n <= ns / 10000 + 1, "%lu samples of 0.01 ms in %lu ns", n, ns);
	cr_expect_eq(observer_total(&o), n);
	cr_expect_eq(sum_of_nodes(&o), n);
	cr_expect_eq(o.table->unmatched + o.table->lost + o.table->sleepers_full, 0);
	cr_expect_eq(asleep(&o), 1, "the read() that has not ended");
	actor_end(&s);
	observer_close(&o);
}

Test(kernel_observe_off_cpu, short_sleeps_are_thinned_without_bias)
{
	struct profil_msg_observe ask = ask_off_cpu(PROFIL_SCOPE_PROCESSES, MS);
	struct actor s = sleeper(false, 0); /* nanosleep(0): 50 us of timer slack */
	uint64_t began, ns, n;
	struct observer o;

	await_rest(&s);
	cr_assert_eq(observer_open(&o, &d, &ask), 0);
	cr_assert_eq(observer_add(&o, s.pid), 0);
	began = now_ns();
	for (int i = 0; i < 2000; i++) {
		actor_tell(&s);
		took(&s);
		await_rest(&s); /* it sleeps in nanosleep() and in read(), until the next turn */
	}
	ns = now_ns() - began;
	n = observer_sum(&o);
	cr_expect(n >= 2000 * 50000ull / MS && n <= ns / MS + 1, "%lu samples of 1 ms in %lu ns", n,
		  ns);
	actor_end(&s);
	observer_close(&o);
}

/*
 * Two threads share a CPU: each is off it half of the time, but never asleep. Their first read()
 * began before the attachment, and their second one has not ended.
 */
Test(kernel_observe_off_cpu, preemption_is_no_sleep)
{
	struct profil_msg_observe ask = ask_off_cpu(PROFIL_SCOPE_PROCESSES, MS);
	struct actor a = sleeper(true, 300), b = sleeper(true, 300);
	struct observer o;

	await_rest(&a);
	await_rest(&b);
	cr_assert_eq(observer_open(&o, &d, &ask), 0);
	cr_assert_eq(observer_add(&o, a.pid), 0);
	cr_assert_eq(observer_add(&o, b.pid), 0);
	actor_tell(&a);
	actor_tell(&b);
	took(&a);
	took(&b);
	cr_expect_leq(observer_sum(&o), 10, "%lu ms of sleep in 300 ms of spinning",
		      observer_sum(&o));
	actor_end(&a);
	actor_end(&b);
	observer_close(&o);
}

Test(kernel_observe_off_cpu, a_scope_counts_sleeps_of_its_processes_alone)
{
	struct profil_msg_observe ask = ask_off_cpu(PROFIL_SCOPE_COMMAND, MS);
	struct actor other = sleeper(false, 300), s;
	struct observer o;
	char old[16], name[16];
	uint64_t n, ns;

	snprintf(name, sizeof(name), "off-%d", (int)getpid()); /* not that of a parallel run */
	prctl(PR_GET_NAME, old);
	prctl(PR_SET_NAME, name);
	s = sleeper(false, 200);
	prctl(PR_SET_NAME, old);
	strcpy(ask.command, name);
	await_rest(&s);
	await_rest(&other);
	cr_assert_eq(observer_open(&o, &d, &ask), 0);
	actor_tell(&other);
	actor_tell(&s);
	ns = took(&s);
	took(&other);
	n = observer_sum(&o);
	cr_expect(n >= 199 && n <= ns / MS + 1, "%lu samples of 1 ms in %lu ns", n, ns);
	actor_end(&s);
	actor_end(&other);
	observer_close(&o);
}

#define THREADS 400

static void *wait_for_end(void *arg)
{
	poll(&(struct pollfd){ *(int *)arg, POLLIN, 0 }, 1, -1);
	return NULL;
}

/* Starts THREADS threads that sleep until the write end of @gate is closed. */
static pid_t crowd(int gate[2])
{
	pid_t pid = fork();

	cr_assert(pid >= 0);
	if (!pid) {
		pthread_t t[THREADS];
		pthread_attr_t attr;

		close(gate[1]);
		pthread_attr_init(&attr);
		pthread_attr_setstacksize(&attr, 65536);
		raise(SIGSTOP);
		for (int i = 0; i < THREADS; i++) {
			if (pthread_create(&t[i], &attr, wait_for_end, gate))
				_exit(1);
		}
		for (int i = 0; i < THREADS; i++)
			pthread_join(t[i], NULL);
		_exit(0);
	}
	return pid;
}

Test(kernel_observe_off_cpu, sleeps_without_room_are_told)
{
	struct profil_msg_observe ask = ask_off_cpu(PROFIL_SCOPE_PROCESSES, MS);
	struct observer o;
	int gate[2], status;
	pid_t pid;

	ask.sleepers = 1; /* a page */
	cr_assert(!pipe(gate));
	pid = crowd(gate);
	waitpid(pid, &status, WUNTRACED);
	cr_assert(WIFSTOPPED(status));
	cr_assert_eq(observer_open(&o, &d, &ask), 0);
	cr_assert(o.table->sleepers && o.table->sleepers <= THREADS / 2, "%u", o.table->sleepers);
	cr_assert_eq(observer_add(&o, pid), 0);
	kill(pid, SIGCONT);
	while (asleep(&o) + o.table->sleepers_full < THREADS)
		sched_yield();
	cr_expect_geq(o.table->sleepers_full, THREADS - o.table->sleepers);
	close(gate[1]);
	close(gate[0]);
	waitpid(pid, &status, 0);
	cr_expect(WIFEXITED(status) && !WEXITSTATUS(status));
	observer_check(&o);
	cr_expect_eq(asleep(&o), 0, "all have ended");
	observer_close(&o);
}

/* --- refusals --------------------------------------------------------------------------------- */

static int answer_to(struct profil_msg_observe ask)
{
	struct observer o;
	int err = observer_open(&o, &d, &ask);

	observer_close(&o);
	return err;
}

Test(kernel_observe_off_cpu, what_cannot_be_counted_is_refused)
{
	struct profil_msg_observe ask = ask_off_cpu(PROFIL_SCOPE_PROCESSES, MS);

	ask.stack_mode = PROFIL_STACK_NONE;
	cr_expect_eq(answer_to(ask), EINVAL, "its samples are counted by stacks");
	ask = ask_off_cpu(PROFIL_SCOPE_PROCESSES, MS);
	ask.event_config = 1;
	cr_expect_eq(answer_to(ask), EINVAL);
	ask = ask_off_cpu(PROFIL_SCOPE_PROCESSES, 0);
	ask.frequency = 100;
	cr_expect_eq(answer_to(ask), EINVAL, "it has a period, not a frequency");
	ask = ask_off_cpu(PROFIL_SCOPE_PROCESSES, MS);
	ask.sleepers = ~0u;
	cr_expect_eq(answer_to(ask), E2BIG);
}

/* Runs as ALICE; returns 0, or the number of the check that failed. */
static int only_her_own(unsigned int roots)
{
	struct profil_msg_observe ask = ask_off_cpu(PROFIL_SCOPE_USER, MS),
				  one = ask_off_cpu(PROFIL_SCOPE_PROCESSES, MS);
	struct actor s = sleeper(false, 200);
	struct observer o;
	uint64_t n, ns, began;

	await_rest(&s);
	if (observer_open(&o, &d, &one) || observer_add(&o, (pid_t)roots) != EACCES)
		return 1;
	observer_close(&o);
	ask.uid = ALICE;
	began = now_ns();
	if (observer_open(&o, &d, &ask))
		return 2;
	actor_tell(&s);
	ns = took(&s);
	n = observer_sum(&o);
	/* This process sleeps meanwhile, and is counted too. */
	ns += now_ns() - began;
	actor_end(&s);
	return n < 199 || n > ns / MS + 2 ? 3 : 0;
}

Test(kernel_observe_off_cpu, a_user_sees_no_sleeps_of_others)
{
	struct actor s = sleeper(false, 100000);

	actor_tell(&s);
	users_expect_end(users_run(ALICE, only_her_own, (unsigned int)s.pid), 0, "alice");
	actor_end(&s);
}
