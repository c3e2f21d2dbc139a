/* kernel_regions.c - the search for a region is logarithmic in the number of regions */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/profil.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/daemon.h"
#include "tests/lib/programs.h"

#define REGIONS 4096
#define ROUNDS 5
#define SPIN_S 0.15 /* of CPU time: 1500 ticks */

DAEMON_SUITE(kernel_regions, "--fast-rate", "10000", "--clock", "cpu-clock");

static void spin(double seconds)
{
	struct timespec from, now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	do {
		for (volatile int i = 0; i < 100000; i++)
			;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while ((double)(now.tv_sec - from.tv_sec) + (double)(now.tv_nsec - from.tv_nsec) / 1e9 <
		 seconds);
}

/* Nanoseconds per tick while this process has @n regions, the last of which covers its pcs. */
static double cost(unsigned int n)
{
	static unsigned int counts[REGIONS + 65536];
	static struct prof prof[REGIONS];
	struct bpf_prog_info before, after;

	for (unsigned int i = 0; i + 1 < n; i++)
		prof[i] = (struct prof){ &counts[i], sizeof(counts[0]), 64 * (i + 1), 0x10000 };
	prof[n - 1] = (struct prof){ &counts[REGIONS], 65536 * sizeof(counts[0]),
				     (size_t)spin & ~(size_t)0xffff, 0x10000 };
	cr_assert_eq(sprofil(prof, (int)n, NULL, PROF_UINT | PROF_FAST), 0);
	before = program_ran(&d, "tick_event");
	spin(SPIN_S);
	after = program_ran(&d, "tick_event");
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
	cr_assert_gt(after.run_cnt - before.run_cnt, 100, "there were at most 100 ticks");
	return (double)(after.run_time_ns - before.run_time_ns) /
	       (double)(after.run_cnt - before.run_cnt);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * A binary search in 4096 regions takes 12 steps. A linear search, at a nanosecond each, would take
 * some 4000 ns; a tick in one region takes about 100. The medians of interleaved rounds differ by
 * far less than the factor 3 that is allowed.
 */
Test(kernel_regions, a_tick_among_4096_takes_less_than_three_times_as_long)
{
	static const unsigned int sizes[] = { 1, 16, 256, REGIONS };
	double ns[4][ROUNDS];
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);

	cr_assert_geq(stats, 0);
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < 4; i++)
			ns[i][round] = cost(sizes[i]);
	}
	close(stats);
	for (int i = 0; i < 4; i++) {
		qsort(ns[i], ROUNDS, sizeof(ns[i][0]), ascending);
		fprintf(stderr, "%4u regions: %.0f ns a tick (%.0f to %.0f)\n", sizes[i],
			ns[i][ROUNDS / 2], ns[i][0], ns[i][ROUNDS - 1]);
	}
	cr_assert_lt(ns[3][ROUNDS / 2], 3 * ns[0][ROUNDS / 2]);
}
