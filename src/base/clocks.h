/* clocks.h - the kernel's clocks in nanoseconds */
#ifndef PROFIL_BASE_CLOCKS_H
#define PROFIL_BASE_CLOCKS_H

#include <time.h>
#include <linux/types.h>

static inline __u64 clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (__u64)t.tv_sec * 1000000000u + (__u64)t.tv_nsec;
}

static inline __u64 now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

#endif
