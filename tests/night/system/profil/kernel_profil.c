/* kernel_profil.c - an unmodified program that calls profil(), counted by the kernel */
#include <criterion/criterion.h>
#include <math.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/kernel_ticks.h"

DAEMON_SUITE(kernel_profil, "--rate", TICKS_RATE);

enum how { BY_LIBC, BY_PRELOAD, BY_LINK };

/* The output of tests/programs/split.c. */
struct split {
	char footprint[3][4096];	  /* before, during and after the profile */
	unsigned long first, second, all; /* ticks */
	struct loop_time time;		  /* of them all */
};

static FILE *split_open(enum how how, const char *seconds)
{
	const char *build = getenv("BUILD"), *preload = getenv("PROFIL_PRELOAD");
	char command[1024];

	build = build ? build : "build";
	cr_assert(how != BY_PRELOAD || preload, "PROFIL_PRELOAD is not set: run tests/run.sh");
	snprintf(command, sizeof(command), "LD_PRELOAD=%s exec %s/tests/programs/split%s %s",
		 how == BY_PRELOAD ? preload : "", build, how == BY_LINK ? ".linked" : "", seconds);
	return popen(command, "re");
}

static void split_run(struct split *out, enum how how, const char *seconds)
{
	FILE *f = split_open(how, seconds);
	char line[4096];
	int footprints = 0, status;

	memset(out, 0, sizeof(*out));
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "first %lu ticks", &out->first);
		sscanf(line, "second %lu ticks", &out->second);
		sscanf(line, "all %lu ticks %" SCNu64 " ns %" SCNu64, &out->all, &out->time.cpu_ns,
		       &out->time.task_ns);
		if (!strncmp(line, "footprint", 9) && footprints < 3)
			memcpy(out->footprint[footprints++], line, sizeof(line));
	}
	status = f ? pclose(f) : -1;
	cr_assert(status == 0 && footprints == 3 && out->time.cpu_ns,
		  "split ended with wait status 0x%x after %d footprints", status, footprints);
}

/* Of a run of @factor times 250 ticks, @arg being its how. */
static struct split batch(unsigned int factor, const void *arg)
{
	struct split s;
	char seconds[24];

	snprintf(seconds, sizeof(seconds), "%.2f", 0.25 * factor);
	split_run(&s, *(const enum how *)arg, seconds);
	return s;
}

static double in_cpu_time(unsigned int factor, void *arg)
{
	struct split s = batch(factor, arg);

	return (double)s.all * TICKS_PERIOD_NS / (double)s.time.cpu_ns;
}

static double of_first_loop(unsigned int factor, void *arg)
{
	struct split s = batch(factor, arg);

	return s.all < 200 ? NAN : (double)s.first / (double)(s.first + s.second);
}

static void split_is_right(enum how how)
{
	ticks_equivalent(in_cpu_time, &how, 1, 0.01, "ticks in the CPU time");
	ticks_equivalent(of_first_loop, &how, 0.7, 0.02, "the first loop");
}

Test(kernel_profil, counts_of_a_preloaded_program_are_the_time_of_its_loops)
{
	split_is_right(BY_PRELOAD);
}

Test(kernel_profil, counts_of_a_linked_program_are_the_time_of_its_loops)
{
	split_is_right(BY_LINK);
}

/* Handlers, masks, pending signals, timers, threads and descriptors must not change. */
static void leaves_no_trace(enum how how)
{
	struct split s;

	split_run(&s, how, "0.05");
	cr_expect_str_eq(s.footprint[1], s.footprint[0]);
	cr_expect_str_eq(s.footprint[2], s.footprint[0]);
}

Test(kernel_profil, leaves_no_handler_timer_thread_or_descriptor_in_a_preloaded_program)
{
	leaves_no_trace(BY_PRELOAD);
}

Test(kernel_profil, leaves_no_handler_timer_thread_or_descriptor_in_a_linked_program)
{
	leaves_no_trace(BY_LINK);
}

/* The two tests before can fail: libc's own profil() leaves a handler and a timer. */
Test(kernel_profil, libcs_own_profil_leaves_a_handler_and_a_timer)
{
	struct split s;

	split_run(&s, BY_LIBC, "0.05");
	cr_assert_str_neq(s.footprint[1], s.footprint[0]);
}
