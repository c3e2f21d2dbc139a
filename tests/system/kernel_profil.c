/* kernel_profil.c - an unmodified program that calls profil(), counted by the kernel */
#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_ticks.h"

static struct daemon d;

static void start(void)
{
	static const char *args[] = { "--rate", TICKS_RATE, NULL };

	daemon_start(&d, NULL, args);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_profil, .init = start, .fini = stop);

enum how { BY_LIBC, BY_PRELOAD, BY_LINK };

/* What tests/programs/split.c says. */
struct split {
	char footprint[3][4096];	  /* before, while and after it is profiled */
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

/*
 * 5500 ticks on a busy machine, in slices of 3 ms, have a standard deviation of at most 22 ticks,
 * 0.4 %, and the first loop's share one of 0.2 points. Two points are ten of those, 2 % of the sum
 * are five: one run in two million.
 */
static void split_is_right(enum how how)
{
	struct split s;
	double first, second;

	split_run(&s, how, "5.5");
	cr_assert_geq(s.all, 5000, "only %lu ticks", s.all);
	first = 100.0 * (double)s.first / (double)s.all;
	second = 100.0 * (double)s.second / (double)s.all;
	ticks_expect(s.all, &s.time, TICKS_PERIOD_NS, 2, 0, "the sum");
	cr_expect_float_eq(first, 70, 2, "the first loop, 70 %%, has %.2f %%", first);
	cr_expect_float_eq(second, 30, 2, "the second loop, 30 %%, has %.2f %%", second);
}

Test(kernel_profil, a_preloaded_programs_counts_are_its_time_where_it_was_spent)
{
	split_is_right(BY_PRELOAD);
}

Test(kernel_profil, a_linked_programs_counts_are_its_time_where_it_was_spent)
{
	split_is_right(BY_LINK);
}

/* Handlers, masks, pending signals, timers, threads and descriptors are those of before. */
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

/* What the two tests before would see: libc's own profil() leaves a handler and a timer. */
Test(kernel_profil, the_traces_of_libcs_own_show)
{
	struct split s;

	split_run(&s, BY_LIBC, "0.05");
	cr_assert_str_neq(s.footprint[1], s.footprint[0]);
}
