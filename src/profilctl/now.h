/* now.h - the time that only goes on */
#ifndef PROFIL_NOW_H
#define PROFIL_NOW_H

#include <time.h>
#include <linux/types.h>

static inline __u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (__u64)t.tv_sec * 1000000000u + (__u64)t.tv_nsec;
}

#endif
