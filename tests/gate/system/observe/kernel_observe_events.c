/* kernel_observe_events.c - attachments that count events other than CPU time */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "tests/lib/actors.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/observer.h"
#include "tests/lib/users.h"

#define ALICE 61001

DAEMON_SUITE(kernel_observe_events, "--rate", TICKS_RATE, "--user-rate", "2000");

/* --- counts ----------------------------------------------------------------------------------- */

Test(kernel_observe_events, every_page_fault_is_counted)
{
	struct profil_msg_observe ask = ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1);
	uint64_t switches, n = actor_samples(&d, &ask, FAULT, 5000, &switches);

	cr_expect_geq(n, 5000, "%lu samples of 5000 faults", n);
}

/* Preemption and its end add context switches, which the process counts as well. */
Test(kernel_observe_events, every_context_switch_is_counted)
{
	struct profil_msg_observe ask =
		ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 1);
	uint64_t switches, n = actor_samples(&d, &ask, SLEEP, 1000, &switches);

	cr_expect(n >= 1000 && n <= switches, "%lu samples of 1000 sleeps and %lu switches", n,
		  switches);
}

Test(kernel_observe_events, an_event_and_a_clock_are_counted_apart)
{
	uint64_t events, times;

	actor_samples_apart(&d, &events, &times);
	/* Its code and stack have fewer pages than the other process touches. */
	cr_expect_lt(events, 5000);
	cr_expect_gt(times, 0);
}

/* --- refusals --------------------------------------------------------------------------------- */

static int answer_to(struct profil_msg_observe ask)
{
	struct observer o;
	int err = observer_open(&o, &d, &ask);

	observer_close(&o);
	return err;
}

Test(kernel_observe_events, unknown_and_unsuitable_events_are_refused)
{
	struct profil_msg_observe ask = ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1);

	cr_expect_eq(answer_to(ask_event(PERF_TYPE_RAW, 1, 1)), EOPNOTSUPP);
	cr_expect_eq(answer_to(ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 1)),
		     EOPNOTSUPP);
	cr_expect_eq(answer_to(ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT, 1)),
		     EOPNOTSUPP);
	cr_expect_eq(answer_to(ask_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_MAX, 1)), EOPNOTSUPP);
	cr_expect_eq(answer_to(ask_event(PERF_TYPE_TRACEPOINT, 1, 1)), EOPNOTSUPP,
		     "every function of the kernel");
	cr_expect_eq(answer_to(ask_event(PERF_TYPE_TRACEPOINT, ~0ull, 1)), EOPNOTSUPP);
	cr_expect_eq(answer_to(ask_event(PERF_TYPE_SOFTWARE, 2, 1ull << 32)), EINVAL);
	ask.frequency = 1;
	ask.period_ns = ~0ull; /* ignored with a frequency */
	cr_expect_eq(answer_to(ask), 0);
	ask.frequency = ~0u;
	cr_expect_eq(answer_to(ask), EINVAL);
}

/* Few machines have them. */
Test(kernel_observe_events, branches_need_a_frequency_and_nodes)
{
	struct profil_msg_observe ask = ask_event(PROFIL_EVENT_BRANCHES, 0, 1);
	int err;

	cr_expect_eq(answer_to(ask), EINVAL, "a period");
	ask.frequency = 100;
	cr_expect_eq(answer_to(ask), EINVAL, "no nodes");
	ask.stack_mode = PROFIL_STACK_FP;
	err = answer_to(ask);
	cr_expect(!err || err == EOPNOTSUPP, "%s", strerror(err));
	ask.event_config = 1;
	cr_expect_eq(answer_to(ask), EINVAL, "a config");
}

/* Runs as ALICE; returns 0, or the number of the check that failed. */
static int limits_of_a_user(unsigned int unused)
{
	struct profil_msg_observe ask = ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1);
	struct observer o[3];

	if (answer_to(ask_event(PERF_TYPE_TRACEPOINT, 500, 1)) != EACCES)
		return 1;
	ask.frequency = 2001;
	if (answer_to(ask) != EACCES)
		return 2;
	ask.frequency = 0;
	if (observer_open(&o[0], &d, &ask) || observer_open(&o[1], &d, &ask))
		return 3;
	if (observer_open(&o[2], &d, &ask) != EAGAIN)
		return 4;
	observer_close(&o[0]);
	observer_close(&o[2]);
	return observer_open(&o[2], &d, &ask) ? 5 : 0;
}

Test(kernel_observe_events, a_user_may_have_two_event_attachments_and_no_tracepoint)
{
	users_expect_end(users_run(ALICE, limits_of_a_user, 0), 0, "alice");
}

static int adapted(unsigned int unused)
{
	return actor_weighted(&d, 1);
}

/* What its samples stand for: synth_cpu_time. */
Test(kernel_observe_events, a_users_samples_hide_kernel_addresses)
{
	users_expect_end(users_run(ALICE, adapted, 0), 0, "alice");
}
