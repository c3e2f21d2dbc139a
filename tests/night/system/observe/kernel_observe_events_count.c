/* kernel_observe_events_count.c - how many events of a known number are counted, sampled and
 * throttled */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/perf_event.h>
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

DAEMON_SUITE(kernel_observe_events_count, "--rate", TICKS_RATE, "--user-rate", "2000");

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
		nanosleep(&ts, NULL);
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

static void dismiss(const struct actor *a)
{
	kill(a->pid, SIGKILL); /* a later actor may hold its pipes open */
	close(a->go);
	close(a->done);
	waitpid(a->pid, NULL, 0);
}

/* The samples of @ask in a process that acts once. */
static uint64_t samples_of(const struct profil_msg_observe *ask, enum deed deed, unsigned int n)
{
	struct actor a = actor(deed, n);
	struct observer o;
	uint64_t samples;

	cr_assert_eq(observer_open(&o, &d, ask), 0);
	cr_assert_eq(observer_add(&o, a.pid), 0);
	once_more(&a);
	dismiss(&a);
	samples = observer_check(&o);
	observer_close(&o);
	return samples;
}

/* --- counts ----------------------------------------------------------------------------------- */

#define FEW 40 /* faults of its code and stack, and waits for its pipes */

Test(kernel_observe_events_count, every_page_fault_is_counted)
{
	struct profil_msg_observe ask = ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1);
	uint64_t n = samples_of(&ask, FAULT, 5000);

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
	uint64_t n = samples_of(&ask, FAULT, 5000);

	cr_expect(n >= 400 && n <= 600, "%lu samples of 5000 faults, one in 10", n);
}

Test(kernel_observe_events_count, every_context_switch_is_counted)
{
	struct profil_msg_observe ask =
		ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 1);
	uint64_t n = samples_of(&ask, SLEEP, 1000);

	/* Preemption adds context switches. */
	cr_expect(n >= 1000 && n <= 1300, "%lu samples of 1000 sleeps", n);
}

Test(kernel_observe_events_count, a_frequency_limits_the_samples)
{
	struct profil_msg_observe ask = ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0);
	uint64_t n;

	ask.frequency = 200;
	n = samples_of(&ask, FAULT, 200000);
	cr_expect(n >= 1 && n < 20000, "%lu samples of 200000 faults at 200 Hz", n);
}

Test(kernel_observe_events_count, an_event_and_a_clock_are_counted_apart)
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
	cr_expect_leq(observer_check(&events), FEW);
	cr_expect(observer_check(&times) >= 100 && observer_check(&times) <= 300,
		  "%lu samples of 200 ms at " TICKS_RATE " Hz", observer_check(&times));
	dismiss(&faulty);
	observer_close(&times);
	observer_close(&events);
}

/*
 * The kernel samples a user's events at most 2000 times a second on each CPU, with weights that add
 * up to all events. Runs as ALICE; returns 0, or the number of the check that failed.
 */
static int throttled(unsigned int unused)
{
	struct profil_msg_observe ask = ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1);
	struct actor a = actor(FAULT, 300000);
	struct observer o;
	uint64_t n;
	int places = 0;

	(void)unused;
	if (observer_open(&o, &d, &ask) || observer_add(&o, a.pid))
		return 1;
	once_more(&a);
	dismiss(&a);
	n = observer_check(&o);
	if (n < 200000 || n > 400000 || o.table->lost)
		return 2;
	for (uint32_t i = 1; i <= o.table->images; i++) {
		const struct profil_image *image = observer_image(&o, i);

		if (image && image->kind == PROFIL_IMAGE_KERNEL)
			places++;
	}
	observer_close(&o);
	return places > 1 ? 3 : 0; /* kernel addresses are hidden: one place */
}

Test(kernel_observe_events_count, a_users_samples_are_throttled_and_weighted)
{
	users_expect_end(users_run(ALICE, throttled, 0), 0, "alice");
}
