/* kernel_rest.c - a daemon sleeps as long as all who are profiled do, and no longer */
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

#include "core/scope.h"
#include "kernel_ticks.h"
#include "state.h"

static struct daemon d;
static const char *args[] = { "--rate", TICKS_RATE, NULL };

/* A process that is profiled, in memory that we see too: it sleeps until it is told to work. */
static struct sleeper {
	unsigned short buf[LOOPS];
	int work;
} * sleeper;
static pid_t pid;

/* Runs in the child; its exit status tells what failed. */
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
	cr_assert(await_state(pid, pid, 'S'), "the sleeper has gone");
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
	cr_assert(n >= 0, "%s says nothing of the daemon's sleep", path);
	return n;
}

/* That nothing happens cannot be awaited: for a second, of which the mirror has ten passes. */
static long wakeups_in_a_second(void)
{
	const struct timespec second = { 1, 0 };
	long before = wakeups();

	nanosleep(&second, NULL);
	return wakeups() - before;
}

/* What it does of its own accord after a request is soon over. */
static void expect_rest(void)
{
	long n = -1;

	for (int i = 0; i < 5 && n; i++)
		n = wakeups_in_a_second();
	cr_expect_eq(n, 0, "%ld wake-ups in a second, while all who are profiled sleep", n);
}

static unsigned int count(void)
{
	return __atomic_load_n(&sleeper->buf[0], __ATOMIC_RELAXED);
}

/* Has it work until its buffer, for which nobody asks, has more than it has. */
static void expect_counts(void)
{
	unsigned int before = count();

	alarm(30);
	__atomic_store_n(&sleeper->work, 1, __ATOMIC_RELAXED);
	kill(pid, SIGUSR1);
	while (count() == before)
		sched_yield();
	__atomic_store_n(&sleeper->work, 0, __ATOMIC_RELAXED);
	cr_assert(await_state(pid, pid, 'S'), "the sleeper has gone");
	alarm(0);
}

Test(kernel_rest, nobody_works_nobody_is_woken)
{
	expect_rest();
}

Test(kernel_rest, the_first_tick_ends_it)
{
	for (int i = 0; i < 3; i++) {
		expect_rest();
		expect_counts();
	}
}

/* The last ticks before a sleep are in the buffer before the daemon rests. */
Test(kernel_rest, no_tick_is_left_behind)
{
	unsigned int seen;

	expect_counts();
	expect_rest();
	seen = count();
	daemon_stop(&d);
	cr_expect_eq(count(), seen, "%u ticks came with the end", count() - seen);
	daemon_restart(&d);
}

Test(kernel_rest, the_next_daemon_rests_and_wakes_as_well)
{
	expect_rest();
	daemon_kill(&d);
	daemon_restart(&d);
	expect_rest();
	expect_counts();
}
