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
