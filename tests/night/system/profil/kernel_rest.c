/* kernel_rest.c - the daemon sleeps while every profiled process does, and wakes with the first
 * tick */
#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/state.h"

static struct daemon d;
static const char *args[] = { "--rate", TICKS_RATE, NULL };

/* A profiled process that works between SIGUSR1 and @work = 0, in memory shared with the test. */
static struct sleeper {
	unsigned short buf[LOOPS];
	int work;
} * sleeper;
static pid_t pid;

/* Runs in the child; the exit status names the step that failed. */
static void sleep_and_work(void)
{
	sigset_t go;
	int signal;

	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	if (ticks_profile(sleeper->buf) < 0)
		_exit(1);
	while (!sigwait(&go, &signal)) {
		while (__atomic_load_n(&sleeper->work, __ATOMIC_RELAXED))
			loop_for(0, 1000000);
	}
	_exit(2);
}

static void start(void)
{
	sigset_t go;

	ticks_need_bpffs();
	daemon_start(&d, NULL, args);
	sleeper = mmap(NULL, sizeof(*sleeper), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	cr_assert_neq(sleeper, MAP_FAILED);
	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	sigprocmask(SIG_BLOCK, &go, NULL);
	pid = fork();
	cr_assert(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sleep_and_work();
	}
	ticks_await_profiles(&d, 1);
	cr_assert(await_state(pid, pid, 'S'), "the sleeper has ended");
}

static void stop(void)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	daemon_stop(&d);
}

TestSuite(kernel_rest, .init = start, .fini = stop);

static long wakeups(void)
{
	__cleanup(fclosep) FILE *f = NULL;
	char path[64], line[256];
	long n = -1;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)d.pid);
	f = fopen(path, "re");
	while (f && n < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "voluntary_ctxt_switches: %ld", &n);
	cr_assert(n >= 0, "%s has no number of context switches", path);
	return n;
}

/* The absence of wake-ups cannot be awaited: a second, the time of ten drains, must do. */
static long wakeups_in_a_second(void)
{
	const struct timespec second = { 1, 0 };
	long before = wakeups();

	nanosleep(&second, NULL);
	return wakeups() - before;
}

/* After a request the daemon may wake up a few times more, later if it waits for a CPU. */
static void expect_rest(void)
{
	long n = -1;

	for (int i = 0; i < 20 && n; i++)
		n = wakeups_in_a_second();
	cr_expect_eq(n, 0, "%ld wake-ups in a second while every profiled process sleeps", n);
}

static unsigned int count(void)
{
	return __atomic_load_n(&sleeper->buf[0], __ATOMIC_RELAXED);
}

/* Lets the process work until the daemon has written more ticks, without a sync. */
static void expect_counts(void)
{
	unsigned int before = count();

	alarm(60);
	__atomic_store_n(&sleeper->work, 1, __ATOMIC_RELAXED);
	kill(pid, SIGUSR1);
	while (count() == before)
		sched_yield();
	__atomic_store_n(&sleeper->work, 0, __ATOMIC_RELAXED);
	cr_assert(await_state(pid, pid, 'S'), "the sleeper has ended");
	alarm(0);
}

Test(kernel_rest, the_daemon_sleeps_while_no_profiled_process_works)
{
	expect_rest();
}

Test(kernel_rest, the_first_tick_wakes_the_daemon)
{
	for (int i = 0; i < 3; i++) {
		expect_rest();
		expect_counts();
	}
}

/* The daemon drains the last ticks before it sleeps. */
Test(kernel_rest, every_tick_is_written_before_the_daemon_sleeps)
{
	unsigned int seen;

	expect_counts();
	expect_rest();
	seen = count();
	daemon_stop(&d);
	cr_expect_eq(count(), seen, "%u ticks were written only at the end", count() - seen);
	daemon_restart(&d);
}

Test(kernel_rest, the_next_daemon_sleeps_and_wakes_as_well)
{
	expect_rest();
	daemon_kill(&d);
	daemon_restart(&d);
	expect_rest();
	expect_counts();
}
