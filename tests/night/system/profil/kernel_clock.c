/* kernel_clock.c - every clock: ticks account for CPU time, and no event runs without a profile */
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

#include "tests/lib/kernel_ticks.h"
#include "profil.h"

#define NSEC_PER_SEC 1000000000ull
#define RAN_NS 2500000000ull

static void start_clock(struct daemon *d, const char *clock, const char *rate)
{
	static const char *args[5];

	args[0] = "--clock";
	args[1] = clock;
	args[2] = "--rate";
	args[3] = rate;
	daemon_start(d, NULL, args);
}

/* Counts every sample of the process in one counter. Returns the tick in ns. */
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
	char hz[24]; /* empty: that of the timer tick */
};

ParameterizedTestParameters(kernel_clock, ticks_are_the_cpu_time)
{
	static struct rate rates[] = {
		{ "tick", "" },
		{ "cpu-clock", "1009" },
	};

	return cr_make_param_array(struct rate, rates, sizeof(rates) / sizeof(rates[0]));
}

#define BATCH_TICKS 250

/* The CPU time that the ticks of a profile stand for, in that of its loop. */
static double ticks_in_cpu_time(unsigned int factor, void *arg)
{
	struct loop_time time = { 0 };
	unsigned int counter = 0;
	unsigned long tick_ns;

	tick_ns = count_into(&counter, 0);
	loop_timed(&time, 3, factor * BATCH_TICKS * tick_ns);
	count_no_more();
	return (double)counter * (double)tick_ns / (double)time.cpu_ns;
}

/* That samples are CPU time, whatever the slices, the gate has by made-up run times:
 * synth_cpu_time. */
ParameterizedTest(struct rate *rate, kernel_clock, ticks_are_the_cpu_time)
{
	struct daemon d;

	if (!*rate->hz)
		snprintf(rate->hz, sizeof(rate->hz), "%lu", ticks_timer_hz());
	start_clock(&d, rate->clock, rate->hz);
	ticks_equivalent(ticks_in_cpu_time, NULL, 1, 0.01, rate->clock);
	daemon_stop(&d);
}

static uint64_t own_ns;

static void *loop_of_its_own(void *loop)
{
	loop_for(*(unsigned int *)loop, own_ns);
	return NULL;
}

/* The first thread's part of the ticks of two that use the same CPU time. */
static double of_the_first(unsigned int factor, void *unused)
{
	static unsigned int counter[LOOPS];
	struct prof loops_apart = { counter, sizeof(counter), loop_at(0), TICKS_SCALE_32 };
	unsigned int loop[2] = { 4, 9 };
	pthread_t thread[2];

	memset(counter, 0, sizeof(counter));
	own_ns = factor * BATCH_TICKS * NSEC_PER_SEC / ticks_timer_hz();
	cr_assert_eq(sprofil(&loops_apart, 1, NULL, PROF_UINT), 0, "sprofil: %s", strerror(errno));
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, loop_of_its_own, &loop[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	count_no_more();
	return (double)counter[4] / (double)(counter[4] + counter[9]);
}

/*
 * Two threads on one CPU take turns at the timer's rate, and half of the ticks count: each thread
 * must get its half, not one thread all.
 */
Test(kernel_clock, threads_that_take_turns_get_a_share_each)
{
	struct daemon d;
	char hz[24];
	cpu_set_t one;

	snprintf(hz, sizeof(hz), "%lu", ticks_timer_hz() / 2);
	start_clock(&d, "tick", hz);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	ticks_equivalent(of_the_first, NULL, 0.5, 0.02, "a thread");
	daemon_stop(&d);
}

Test(kernel_clock, tick_refuses_rates_above_the_timers)
{
	struct timeval tick;
	unsigned int counter;
	struct prof all = { &counter, sizeof(counter), 0, 2 };
	struct daemon d;
	char hz[24], log[512];

	start_clock(&d, "tick", "100");
	errno = 0;
	cr_expect_eq(sprofil(&all, 1, &tick, PROF_UINT | PROF_FAST),
		     ticks_timer_hz() < 1000 ? -1 : 0);
	if (ticks_timer_hz() < 1000)
		cr_expect_eq(errno, EACCES, "sprofil: %s", strerror(errno));
	daemon_stop(&d);

	snprintf(hz, sizeof(hz), "%lu", ticks_timer_hz() + 1);
	cr_expect_eq(daemon_refuses((const char *[]){ "--clock", "tick", "--rate", hz, NULL }, log,
				    sizeof(log)),
		     1);
	cr_expect(strstr(log, "--rate"), "%s", log);
}

Test(kernel_clock, an_unknown_clock_is_refused_by_name)
{
	char log[512];

	cr_expect_eq(daemon_refuses((const char *[]){ "--clock", "sun", NULL }, log, sizeof(log)),
		     2);
	cr_expect(strstr(log, "sun") && strstr(log, "cpu-clock"), "%s", log);
}

/* Whether the link of descriptor @fd is an iterator, which runs only where it is read. */
static int is_iterator(pid_t pid, const char *fd)
{
	char path[300], info[512] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)pid, fd);
	file = fopen(path, "r");
	if (file) {
		info[fread(info, 1, sizeof(info) - 1, file)] = '\0';
		fclose(file);
	}
	return strstr(info, "link_type:\titer") != NULL;
}

/* The number of perf events and BPF links that the daemon holds, each of which costs time when it
 * occurs. */
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
		n += strstr(what, "perf_event") ||
		     ((strstr(what, "bpf_link") || strstr(what, "bpf-link")) &&
		      !is_iterator(pid, entry->d_name));
	}
	closedir(dir);
	return n;
}

/*
 * A child profiles itself at the fast rate, this process at the slower one. About a seventh of the
 * events of its loop of 2.5 s count for this process. Thinning is exact to one period, 1/97 s, so
 * ticks_expect() applies as if the event had that rate.
 */
struct counted {
	struct loop_time time;
	unsigned long tick_ns;
	unsigned int samples;
};

static void expect_counted(const struct counted *c, const char *what)
{
	ticks_expect(c->samples, &c->time, c->tick_ns, 1,
		     2 + 2.0 * NSEC_PER_SEC / (double)ticks_timer_hz() / (double)c->tick_ns, what);
}

/* Runs in the child: writes a byte to @pipe when its profile is on, and its result at the end. */
static void count_fast(int pipe)
{
	struct counted c = { 0 };

	c.tick_ns = count_into(&c.samples, PROF_FAST);
	(void)!write(pipe, "", 1);
	loop_timed(&c.time, 5, RAN_NS);
	count_no_more();
	(void)!write(pipe, &c, sizeof(c));
	_exit(0);
}

Test(kernel_clock, two_rates_share_one_event_per_cpu)
{
	const char *args[] = { "--clock", "cpu-clock", "--rate", "97", "--fast-rate", "701", NULL };
	struct counted slow = { 0 }, fast = { 0 };
	int before, ends[2];
	struct daemon d;
	char byte;

	daemon_start(&d, NULL, args);
	cr_assert_eq(pipe(ends), 0);
	slow.tick_ns = count_into(&slow.samples, 0);
	before = held(d.pid);
	if (fork() == 0)
		count_fast(ends[1]);
	cr_assert_eq(read(ends[0], &byte, 1), 1);
	cr_expect_eq(held(d.pid), before, "%d events and links with one rate, %d with two", before,
		     held(d.pid));
	loop_timed(&slow.time, 3, RAN_NS);
	count_no_more();
	cr_assert_eq(read(ends[0], &fast, sizeof(fast)), sizeof(fast));
	expect_counted(&slow, "97 Hz");
	expect_counted(&fast, "701 Hz");
	daemon_stop(&d);
}

#define HELD_WAIT_S 20

Test(kernel_clock, no_event_is_held_without_a_profile)
{
	time_t end = time(NULL) + HELD_WAIT_S;
	unsigned int counter;
	struct daemon d;

	start_clock(&d, "auto", "100");
	count_into(&counter, PROF_FAST);
	cr_expect(held(d.pid) > 0, "a profile is on, and the daemon holds no event");
	count_no_more();
	count_into(&counter, 0);
	cr_expect(held(d.pid) > 0, "a profile is on, and the daemon holds no event");
	count_no_more();
	while (held(d.pid) && time(NULL) < end)
		usleep(20000); /* there is no event to wait for */
	cr_expect_eq(held(d.pid), 0, "%d events and links are still held after %d s", held(d.pid),
		     HELD_WAIT_S);
	daemon_stop(&d);
}
