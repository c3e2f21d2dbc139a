/* kernel_observe_events_count.c - how many events of a known number are counted, sampled and
 * throttled */
#include <criterion/criterion.h>
#include <linux/perf_event.h>

#include "tests/lib/actors.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/users.h"

#define ALICE 61001

DAEMON_SUITE(kernel_observe_events_count, "--rate", TICKS_RATE, "--user-rate", "2000");

#define FEW 40 /* faults of its code and stack, and waits for its pipes */

Test(kernel_observe_events_count, every_page_fault_is_counted)
{
	struct profil_msg_observe ask = ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1);
	uint64_t n = actor_samples(&d, &ask, FAULT, 5000, NULL);

	cr_expect(n >= 5000 && n <= 5000 + FEW, "%lu samples of 5000 faults", n);
}

/*
 * The period runs for each CPU and includes faults of other processes: 500 samples with a standard
 * deviation of at most 22. The limits are 4.5 of those.
 */
Test(kernel_observe_events_count, a_period_of_10_samples_every_10th_event)
{
	struct profil_msg_observe ask =
		ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 10);
	uint64_t n = actor_samples(&d, &ask, FAULT, 5000, NULL);

	cr_expect(n >= 400 && n <= 600, "%lu samples of 5000 faults, one in 10", n);
}

Test(kernel_observe_events_count, every_context_switch_is_counted)
{
	struct profil_msg_observe ask =
		ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 1);
	uint64_t n = actor_samples(&d, &ask, SLEEP, 1000, NULL);

	/* Preemption adds context switches. */
	cr_expect(n >= 1000 && n <= 1300, "%lu samples of 1000 sleeps", n);
}

Test(kernel_observe_events_count, a_frequency_limits_the_samples)
{
	struct profil_msg_observe ask = ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0);
	uint64_t n;

	ask.frequency = 200;
	n = actor_samples(&d, &ask, FAULT, 200000, NULL);
	cr_expect(n >= 1 && n < 20000, "%lu samples of 200000 faults at 200 Hz", n);
}

Test(kernel_observe_events_count, an_event_and_a_clock_are_counted_apart)
{
	uint64_t events, times;

	actor_samples_apart(&d, &events, &times);
	cr_expect_leq(events, FEW);
	cr_expect(times >= 100 && times <= 300, "%lu samples of 200 ms at " TICKS_RATE " Hz",
		  times);
}

/* The kernel samples a user's events at most 2000 times a second on each CPU, with weights that add
 * up to all events. */
static int throttled(unsigned int unused)
{
	return actor_weighted(&d, 200000);
}

Test(kernel_observe_events_count, a_users_samples_are_throttled_and_weighted)
{
	users_expect_end(users_run(ALICE, throttled, 0), 0, "alice");
}
