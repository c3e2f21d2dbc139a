/* kernel_observe_events.c - attachments that count events other than CPU time */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/kernel_ticks.h"
#include "tests/lib/observer.h"
#include "tests/lib/users.h"

#define ALICE 61001

DAEMON_SUITE(kernel_observe_events, "--rate", TICKS_RATE, "--user-rate", "2000");

static struct profil_msg_observe ask_event(__u32 type, __u64 config, __u64 period)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, period);

	ask.flags |= PROFIL_OBSERVE_EVENT;
	ask.event_type = type;
	ask.event_config = config;
	return ask;
}

/* --- processes that cause a known number of events -------------------------------------------- */

enum deed { FAULT, SLEEP, SPIN };

static long voluntary_switches(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return r.ru_nvcsw;
}

/* Sleeps until that was @n context switches: a timer that expires at once causes none. */
static void sleep_times(unsigned int n)
{
	const struct timespec ts = { 0, 1000 };
	long end = voluntary_switches() + (long)n;

	while (voluntary_switches() < end)
		ppoll(NULL, 0, &ts, NULL);
}

/* Faults in @n pages, or sleeps @n times, or uses @n ms of CPU time. */
static void act(enum deed deed, unsigned int n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = page * (n ? n : 1);
	volatile char *at;

	if (deed == SPIN)
		loop_for(0, (uint64_t)n * 1000000);
	if (deed == SLEEP)
		sleep_times(n);
	if (deed != FAULT)
		return;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED || madvise((void *)at, bytes, MADV_NOHUGEPAGE))
		_exit(1);
	for (size_t i = 0; i < n; i++)
		at[i * page] = 1;
}

struct actor {
	pid_t pid;
	int go;	  /* a byte makes it act */
	int done; /* a byte when it has acted */
};

/* Returns after the actor's first byte: the events of its start are over. */
static struct actor actor(enum deed deed, unsigned int n)
{
	struct actor a;
	int go[2], done[2];
	char byte;

	cr_assert(!pipe(go) && !pipe(done));
	a.pid = fork();
	cr_assert(a.pid >= 0);
	if (!a.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		close(done[0]);
		act(deed, 0);
		while (write(done[1], "", 1) == 1 && read(go[0], &byte, 1) == 1)
			act(deed, n);
		_exit(0);
	}
	close(go[0]);
	close(done[1]);
	a.go = go[1];
	a.done = done[0];
	cr_assert(read(a.done, &byte, 1) == 1);
	return a;
}

static void once_more(const struct actor *a)
{
	char byte;

	cr_assert(write(a->go, "", 1) == 1 && read(a->done, &byte, 1) == 1);
}

/* Returns how often it has left a CPU in its life. */
static uint64_t dismiss(const struct actor *a)
{
	struct rusage r;

	kill(a->pid, SIGKILL); /* a later actor may hold its pipes open */
	close(a->go);
	close(a->done);
	cr_assert_eq(wait4(a->pid, NULL, 0, &r), a->pid);
	return (uint64_t)(r.ru_nvcsw + r.ru_nivcsw);
}

/* The samples of @ask in a process that acts once, and how often it has left a CPU in its life. */
static uint64_t samples_of(const struct profil_msg_observe *ask, enum deed deed, unsigned int n,
			   uint64_t *switches)
{
	struct actor a = actor(deed, n);
	struct observer o;
	uint64_t samples;

	cr_assert_eq(observer_open(&o, &d, ask), 0);
	cr_assert_eq(observer_add(&o, a.pid), 0);
	once_more(&a);
	*switches = dismiss(&a);
	samples = observer_check(&o);
	observer_close(&o);
	return samples;
}

/* --- counts ----------------------------------------------------------------------------------- */

Test(kernel_observe_events, every_page_fault_is_counted)
{
	struct profil_msg_observe ask = ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1);
	uint64_t switches, n = samples_of(&ask, FAULT, 5000, &switches);

	cr_expect_geq(n, 5000, "%lu samples of 5000 faults", n);
}

/* Preemption and its end add context switches, which the process counts as well. */
Test(kernel_observe_events, every_context_switch_is_counted)
{
	struct profil_msg_observe ask =
		ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 1);
	uint64_t switches, n = samples_of(&ask, SLEEP, 1000, &switches);

	cr_expect(n >= 1000 && n <= switches, "%lu samples of 1000 sleeps and %lu switches", n,
		  switches);
}

Test(kernel_observe_events, an_event_and_a_clock_are_counted_apart)
{
	struct profil_msg_observe faults = ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS,
						     1),
				  clock = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	struct actor spins = actor(SPIN, 200), faulty = actor(FAULT, 5000);
	struct observer events, times;

	cr_assert_eq(observer_open(&events, &d, &faults), 0);
	cr_assert_eq(observer_open(&times, &d, &clock), 0);
	cr_assert_eq(observer_add(&events, spins.pid), 0);
	cr_assert_eq(observer_add(&times, spins.pid), 0);
	once_more(&faulty); /* is not observed */
	once_more(&spins);
	dismiss(&spins);
	/* Its code and stack have fewer pages than the other process touches. */
	cr_expect_lt(observer_check(&events), 5000);
	cr_expect_gt(observer_check(&times), 0);
	dismiss(&faulty);
	observer_close(&times);
	observer_close(&events);
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

/* Runs as ALICE; returns 0, or the number of the check that failed. */
static int limits_of_a_user(unsigned int unused)
{
	struct profil_msg_observe ask = ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1);
	struct observer o[3];

	(void)unused;
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

/*
 * The kernel adapts the period of a user's events, and a sample stands for those since the last
 * one: of 300,000 there are some thousand samples. Runs as ALICE; returns 0, or the number of the
 * check that failed.
 */
static int adapted(unsigned int unused)
{
	struct profil_msg_observe ask = ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1);
	struct actor a = actor(FAULT, 300000);
	struct observer o;
	int places = 0;

	(void)unused;
	if (observer_open(&o, &d, &ask) || observer_add(&o, a.pid))
		return 1;
	once_more(&a);
	dismiss(&a);
	if (observer_check(&o) < 20000)
		return 2;
	for (uint32_t i = 1; i <= o.table->images; i++) {
		const struct profil_image *image = observer_image(&o, i);

		if (image && image->kind == PROFIL_IMAGE_KERNEL)
			places++;
	}
	observer_close(&o);
	return places > 1 ? 3 : 0; /* kernel addresses are hidden: one place */
}

Test(kernel_observe_events, a_users_samples_are_weighted_and_hide_kernel_addresses)
{
	users_expect_end(users_run(ALICE, adapted, 0), 0, "alice");
}
