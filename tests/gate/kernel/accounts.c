/* accounts.c - the CPU time that samples on the tick stand for, for made-up run times */
#include <criterion/criterion.h>

#include "synthetic.h"

#define TICK_NS SYNTHETIC_TICK_NS
#define STARTED_NS 1000000000ull

static struct synthetic s;

static void start(void)
{
	synthetic_alone(&s);
}

static void stop(void)
{
	synthetic_close(&s);
}

TestSuite(synth_accounts, .init = start, .fini = stop);

static __u64 first(__u64 ran_ns, __u64 born_ns, __u64 now_ns)
{
	struct synth_first a = { ran_ns, born_ns, STARTED_NS, now_ns, 0 };

	SYNTHETIC_RUN(&s, first, &a);
	return a.ns;
}

/* The CPU time charged to a thread that is younger than the target and has a tick at each of @at.
 */
static __u64 charged(const __u64 *at, int n, __u64 exit_ns, __u64 ran_ns)
{
	struct synth_tick tick = { 0 };
	struct synth_rest rest = { 0 };
	__u64 sum = n ? first(at[0], STARTED_NS + 1, STARTED_NS + 1 + at[0]) : 0;

	for (int i = 0; i < n; i++) {
		/* The accounts of a thread without an epoch begin with each tick. */
		tick.tick_epoch = i ? 1 : 0;
		tick.ran_ns = at[i];
		SYNTHETIC_RUN(&s, tick, &tick);
		sum += i ? tick.ns : 0;
	}
	rest.ticked_ns = tick.ticked_ns;
	rest.ran_ns = exit_ns;
	SYNTHETIC_RUN(&s, rest, &rest);
	sum += rest.ns;
	rest.ran_ns = ran_ns;
	SYNTHETIC_RUN(&s, rest, &rest);
	return sum + rest.ns;
}

Test(synth_accounts, charge_a_thread_all_that_it_ran_wherever_its_ticks_are)
{
	static const __u64 phase[] = { 1, 17, TICK_NS / 2, TICK_NS - 1, TICK_NS };

	for (unsigned int p = 0; p < sizeof(phase) / sizeof(*phase); p++) {
		for (int n = 1; n <= 6; n++) {
			for (__u64 tail = 0; tail <= TICK_NS; tail += TICK_NS / 8) {
				__u64 at[6], ran_ns;

				for (int i = 0; i < n; i++)
					at[i] = phase[p] + (__u64)i * TICK_NS;
				ran_ns = at[n - 1] + tail;
				cr_assert_eq(charged(at, n, ran_ns - tail / 3, ran_ns), ran_ns,
					     "%d ticks from %llu on, %llu after them", n, phase[p],
					     tail);
			}
		}
	}
}

Test(synth_accounts, charge_nothing_twice_after_too_high_an_estimate)
{
	static const __u64 at[] = { TICK_NS };

	cr_assert_eq(charged(at, 1, TICK_NS + 900, TICK_NS + 700), TICK_NS + 900);
	cr_assert_eq(charged(at, 1, TICK_NS - 900, TICK_NS), TICK_NS);
}

/* A target that begins later than the thread knows bounds of what the thread has used since. */
Test(synth_accounts, bound_the_first_tick_of_an_older_thread)
{
	cr_assert_eq(first(TICK_NS * 100, STARTED_NS - 1, STARTED_NS + TICK_NS * 9), TICK_NS);
	cr_assert_eq(first(TICK_NS * 100, STARTED_NS - 1, STARTED_NS + 1000), 1000);
	cr_assert_eq(first(2000, STARTED_NS - 1, STARTED_NS + TICK_NS * 9), 2000);
	cr_assert_eq(first(TICK_NS * 3, STARTED_NS, STARTED_NS + TICK_NS * 9), TICK_NS * 3);
}

/* The scheduler charges OVERLAP_NS of each sleep as CPU time of the turn that follows. */
#define OVERLAP_NS 9000
#define SLEEP_NS 60000
#define TURN_NS 5000
#define SLEEPS 100

Test(synth_accounts, count_no_more_sleep_than_the_wall_clock_leaves)
{
	struct synth_sleep a = { .from_ns = STARTED_NS };
	__u64 asleep_ns = 0, wall_ns;

	for (int i = 0; i < SLEEPS; i++) {
		a.to_ns = a.from_ns + SLEEP_NS;
		SYNTHETIC_RUN(&s, sleep, &a);
		asleep_ns += a.to_ns - a.from_ns - a.taken_ns;
		a.from_ns = a.to_ns + TURN_NS;
		a.ran_ns += OVERLAP_NS + TURN_NS;
	}
	wall_ns = (__u64)SLEEPS * (SLEEP_NS + TURN_NS);
	/* That of the last sleep is taken from the next one. */
	cr_assert_eq(asleep_ns + a.ran_ns, wall_ns + OVERLAP_NS);
}

/* A thread that waits for a CPU between its sleeps has no time to give back. */
Test(synth_accounts, take_nothing_from_sleeps_that_leave_room)
{
	struct synth_sleep a = { .from_ns = STARTED_NS };

	for (int i = 0; i < SLEEPS; i++) {
		a.to_ns = a.from_ns + SLEEP_NS;
		SYNTHETIC_RUN(&s, sleep, &a);
		cr_assert_eq(a.taken_ns, 0);
		a.from_ns = a.to_ns + 2 * TURN_NS;
		a.ran_ns += TURN_NS;
	}
}

/* Whenever a thread is woken up, its states add up to the time without a CPU. */
Test(synth_accounts, divide_a_wait_into_its_states)
{
	static const __u64 woken[] = { 0, 1, SLEEP_NS / 3, SLEEP_NS, SLEEP_NS + 1 };
	static const __u64 taken[] = { 0, 1, SLEEP_NS / 2, SLEEP_NS };

	for (size_t w = 0; w < sizeof(woken) / sizeof(*woken); w++) {
		for (size_t t = 0; t < sizeof(taken) / sizeof(*taken); t++) {
			struct synth_wait a = { .since_ns = STARTED_NS,
						.woken_ns = woken[w] ? STARTED_NS + woken[w] : 0,
						.now_ns = STARTED_NS + SLEEP_NS,
						.taken_ns = taken[t] };
			__u64 asleep_ns = woken[w] && woken[w] < SLEEP_NS ? woken[w] : SLEEP_NS;
			__u64 runnable_ns = SLEEP_NS - asleep_ns;

			SYNTHETIC_RUN(&s, wait, &a);
			cr_expect_eq(a.asleep_ns + a.runnable_ns + taken[t], SLEEP_NS);
			cr_expect_eq(a.runnable_ns,
				     runnable_ns > taken[t] ? runnable_ns - taken[t] : 0);
		}
	}
}

/* A thread that is preempted is never asleep. */
Test(synth_accounts, count_a_preempted_thread_as_runnable)
{
	struct synth_wait a = { .since_ns = STARTED_NS,
				.woken_ns = STARTED_NS,
				.now_ns = STARTED_NS + SLEEP_NS };

	SYNTHETIC_RUN(&s, wait, &a);
	cr_expect_eq(a.asleep_ns, 0);
	cr_expect_eq(a.runnable_ns, SLEEP_NS);
}
