/* kernel_clock.c - the clocks: ticks are CPU time, in step with nobody, and none when nobody asks
 */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/profil.h>
#include <time.h>
#include <unistd.h>

#include "kernel_ticks.h"
#include "profil.h"

#define NSEC_PER_SEC 1000000000ull
#define RAN_NS 2500000000ull

/* The timer's own rate: it brings the coarse clocks forward. */
static unsigned long timer_hz(void)
{
	struct timespec period;

	clock_getres(CLOCK_MONOTONIC_COARSE, &period);
	return (NSEC_PER_SEC + (unsigned long)period.tv_nsec / 2) / (unsigned long)period.tv_nsec;
}

static void start_clock(struct daemon *d, const char *clock, const char *rate)
{
	static const char *args[5];

	args[0] = "--clock";
	args[1] = clock;
	args[2] = "--rate";
	args[3] = rate;
	daemon_start(d, NULL, args);
}

/* Every tick of the process into one counter. Returns the tick in ns. */
static unsigned long count_into(unsigned int *counter, unsigned int flags)
{
	struct prof all = { counter, sizeof(*counter), 0, 2 };
	struct timeval tick;

	cr_assert_eq(sprofil(&all, 1, &tick, PROF_UINT | flags), 0, "sprofil: %s", strerror(errno));
	return (unsigned long)tick.tv_sec * NSEC_PER_SEC + (unsigned long)tick.tv_usec * 1000;
}

static void count_no_more(void)
{
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0, "sprofil: %s", strerror(errno));
}

struct rate {
	char clock[16];
	char hz[24]; /* empty: the timer's own */
};

ParameterizedTestParameters(kernel_clock, ticks_are_the_cpu_time)
{
	static struct rate rates[] = {
		{ "tick", "10" },	 { "tick", "77" },	  { "tick", "100" },
		{ "tick", "" },		 { "cpu-clock", "100" },  { "cpu-clock", "" },
		{ "cpu-clock", "1000" }, { "cpu-clock", "4000" }, { "auto", "100" },
	};

	return cr_make_param_array(struct rate, rates, sizeof(rates) / sizeof(rates[0]));
}

/* Also on a busy machine: one process beside this one takes each CPU as often as it may. */
ParameterizedTest(struct rate *rate, kernel_clock, ticks_are_the_cpu_time)
{
	struct loop_time time = { 0 };
	unsigned int counter = 0;
	unsigned long tick_ns;
	struct daemon d;

	if (!*rate->hz)
		snprintf(rate->hz, sizeof(rate->hz), "%lu", timer_hz());
	start_clock(&d, rate->clock, rate->hz);
	tick_ns = count_into(&counter, 0);
	loop_timed(&time, 3, RAN_NS);
	count_no_more();
	ticks_expect(counter, &time, tick_ns, 1, 2 + 2.0 * NSEC_PER_SEC / timer_hz() / tick_ns,
		     rate->clock);
	daemon_stop(&d);
}

static void *loop_of_its_own(void *loop)
{
	loop_for(*(unsigned int *)loop, RAN_NS);
	return NULL;
}

/*
 * Two threads on one CPU take turns with the timer, at whose half rate each second tick counts: not
 * always the same one's.
 */
Test(kernel_clock, threads_that_take_turns_get_a_share_each)
{
	static unsigned int counter[LOOPS];
	struct prof loops_apart = { counter, sizeof(counter), loop_at(0), TICKS_SCALE_32 };
	unsigned int loop[2] = { 4, 9 };
	pthread_t thread[2];
	struct daemon d;
	char hz[24];
	cpu_set_t one;

	snprintf(hz, sizeof(hz), "%lu", timer_hz() / 2);
	start_clock(&d, "tick", hz);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	cr_assert_eq(sprofil(&loops_apart, 1, NULL, PROF_UINT), 0, "sprofil: %s", strerror(errno));
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, loop_of_its_own, &loop[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	count_no_more();
	for (int i = 0; i < 2; i++) {
		double due = (double)RAN_NS / NSEC_PER_SEC * (double)(timer_hz() / 2);

		cr_expect(counter[loop[i]] > due * .8 && counter[loop[i]] < due * 1.2,
			  "loop %d has %u ticks, not some %.0f", i, counter[loop[i]], due);
	}
	daemon_stop(&d);
}

Test(kernel_clock, the_tick_has_no_faster_rate)
{
	struct timeval tick;
	unsigned int counter;
	struct prof all = { &counter, sizeof(counter), 0, 2 };
	struct daemon d;
	char hz[24], log[512];

	start_clock(&d, "tick", "100");
	errno = 0;
	cr_expect_eq(sprofil(&all, 1, &tick, PROF_UINT | PROF_FAST), timer_hz() < 1000 ? -1 : 0);
	if (timer_hz() < 1000)
		cr_expect_eq(errno, EACCES, "sprofil: %s", strerror(errno));
	daemon_stop(&d);

	snprintf(hz, sizeof(hz), "%lu", timer_hz() + 1);
	cr_expect_eq(daemon_refuses((const char *[]){ "--clock", "tick", "--rate", hz, NULL }, log,
				    sizeof(log)),
		     1);
	cr_expect(strstr(log, "--rate"), "%s", log);
}

Test(kernel_clock, one_that_there_is_not_is_named)
{
	char log[512];

	cr_expect_eq(daemon_refuses((const char *[]){ "--clock", "sun", NULL }, log, sizeof(log)),
		     2);
	cr_expect(strstr(log, "sun") && strstr(log, "cpu-clock"), "%s", log);
}

/* Perf events and links that the daemon holds. */
static int held(pid_t pid)
{
	char path[64], name[400], what[128];
	struct dirent *entry;
	DIR *dir;
	int n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	cr_assert(dir, "%s: %s", path, strerror(errno));
	while ((entry = readdir(dir))) {
		ssize_t bytes;

		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		bytes = readlink(name, what, sizeof(what) - 1);
		what[bytes > 0 ? bytes : 0] = '\0';
		n += strstr(what, "perf_event") || strstr(what, "bpf_link") ||
		     strstr(what, "bpf-link");
	}
	closedir(dir);
	return n;
}

#define HELD_WAIT_S 20

Test(kernel_clock, nothing_ticks_when_nobody_is_profiled)
{
	time_t end = time(NULL) + HELD_WAIT_S;
	unsigned int counter;
	struct daemon d;

	start_clock(&d, "auto", "100");
	count_into(&counter, PROF_FAST);
	cr_expect(held(d.pid) > 0, "there is a profile, and no clock");
	count_no_more();
	count_into(&counter, 0);
	cr_expect(held(d.pid) > 0, "there is a profile, and no clock");
	count_no_more();
	while (held(d.pid) && time(NULL) < end)
		usleep(20000); /* nobody tells us */
	cr_expect_eq(held(d.pid), 0, "%d events and links are still held after %d s", held(d.pid),
		     HELD_WAIT_S);
	daemon_stop(&d);
}
