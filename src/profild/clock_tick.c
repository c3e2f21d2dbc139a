/* clock_tick.c - the timer that a busy CPU takes anyway, as a clock */
#include <bpf/bpf.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "clock_link.h"
#include "config.h"
#include "core/scope.h"
#include "skeleton.h"

static uint64_t ns_of(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * NSEC_PER_SEC + (uint64_t)ts->tv_nsec;
}

uint64_t clock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ns_of(&ts);
}

/* The coarse clocks are those that the tick brings forward. */
uint64_t clock_tick_ns(void)
{
	struct timespec ts;

	clock_getres(CLOCK_MONOTONIC_COARSE, &ts);
	return ns_of(&ts);
}

int clock_tick_link(const struct profil_bpf *skel)
{
	int link = bpf_raw_tracepoint_open(NULL, bpf_program__fd(skel->progs.tick_timer));

	return link < 0 ? -errno : link;
}

/* One would do; this CPU may be another's for some. */
#define AWAITED_TICKS 25

bool clock_tick_await(const struct profil_bpf *skel)
{
	const volatile __u64 *seen = &skel->bss->tables.tick_function;
	uint64_t end = clock_now_ns() + AWAITED_TICKS * clock_tick_ns();

	while (!*seen && clock_now_ns() < end)
		;
	return *seen;
}

bool clock_tick_missing(void)
{
	__cleanup(fclosep) FILE *f = fopen("/sys/devices/system/cpu/nohz_full", "re");
	int first = f ? fgetc(f) : EOF;

	return isdigit(first); /* a list of CPUs; "(null)" or nothing where there are none */
}
