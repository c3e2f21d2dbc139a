/* kernel_late.c - a START that fails at any step leaves the previous profile on */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/kernel_ticks.h"
#include "profil.h"

#define TURNS_MAX 64
#define LARGE 4194304 /* eight chunks of counters, most of which must be created */

static struct daemon d;
static unsigned short old[LOOPS], next[LARGE / sizeof(unsigned short)];

static void start(void)
{
	static const char *args[] = { "--rate", TICKS_RATE, NULL };

	daemon_start(&d, NULL, args);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_late, .init = start, .fini = stop);

static int start_small(void)
{
	return profil(next, 512, 0x400000, 65536);
}

static int start_large(void)
{
	return profil(next, sizeof(next), 0x400000, 65536);
}

/*
 * strace, attached to all threads of the daemon; in each thread the @turn-th @call fails, of mmap()
 * the one of a BPF map: malloc() does without one of its own.
 */
struct tracer {
	pid_t pid;
	FILE *said;
};

static void tracer_start(struct tracer *t, const char *call, int turn)
{
	char inject[64], trace[80], pid[16], line[256] = "";
	int says[2];

	snprintf(inject, sizeof(inject), "inject=%s:error=ENOMEM:when=%d", call, turn);
	snprintf(trace, sizeof(trace), "%s/trace", d.dir);
	snprintf(pid, sizeof(pid), "%d", (int)d.pid);
	cr_assert_eq(pipe(says), 0);
	t->pid = fork();
	if (t->pid == 0) {
		dup2(says[1], STDERR_FILENO);
		execlp("strace", "strace", "-f", "-o", trace, "-e", inject, "-p", pid,
		       strcmp(call, "mmap") ? NULL : "-P", "anon_inode:bpf-map", NULL);
		_exit(127);
	}
	close(says[1]);
	t->said = fdopen(says[0], "r");
	if (!t->said || !fgets(line, sizeof(line), t->said) || !strstr(line, "attached")) {
		kill(t->pid, SIGKILL);
		waitpid(t->pid, NULL, 0);
		cr_skip_test("strace cannot attach here: %s", line);
	}
}

static void tracer_stop(struct tracer *t)
{
	kill(t->pid, SIGTERM);
	while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
		;
	fclose(t->said);
}

/* Says whether a call has failed in any thread of the traced daemon. */
static int tracer_injected(void)
{
	char path[80], line[512];
	int injected = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/trace", d.dir);
	f = fopen(path, "re");
	cr_assert(f, "%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f))
		injected |= strstr(line, "(INJECTED)") != NULL;
	fclose(f);
	return injected;
}

static unsigned long sum_of(const unsigned short *buf)
{
	unsigned long sum = 0;

	cr_assert_eq(profil_sync(), 0, "profil_sync: errno %d", errno);
	for (int i = 0; i < LOOPS; i++)
		sum += buf[i];
	return sum;
}

static void expect_old_counts(void)
{
	unsigned long before = sum_of(old);

	TICKS_SPIN(0, sum_of(old) > before);
}

/*
 * Lets each turn of @call fail until a START succeeds with no such turn; returns the number of
 * failures. A START also succeeds when the turn is a call that it can do without, or one of another
 * thread or for another purpose: the daemon may still release what the profile before had.
 */
static int fail_each(int (*start_next)(void), const char *call)
{
	int failures = 0;

	for (int turn = 1; turn <= TURNS_MAX; turn++) {
		struct tracer t;
		int err;

		cr_assert_eq(ticks_profile(old), 0, "errno %d", errno);
		tracer_start(&t, call, turn);
		err = start_next() < 0 ? errno : 0;
		tracer_stop(&t);
		if (!err && !tracer_injected())
			return failures;
		if (!err)
			continue;
		failures++;
		cr_expect(err == ENOMEM || err == EAGAIN, "%s %d: errno %d", call, turn, err);
		expect_old_counts();
	}
	cr_assert_fail("%s is called more than %d times", call, TURNS_MAX);
	return 0;
}

Test(kernel_late, start_that_fails_in_the_maps_leaves_the_old_profile_on)
{
	cr_expect_geq(fail_each(start_small, "bpf"), 2);
}

Test(kernel_late, start_whose_counters_cannot_be_made_leaves_the_old_profile_on)
{
	cr_expect_geq(fail_each(start_large, "bpf"), 8);
}

Test(kernel_late, start_whose_counters_cannot_be_mapped_leaves_the_old_profile_on)
{
	cr_expect_geq(fail_each(start_large, "mmap"), 2);
}
