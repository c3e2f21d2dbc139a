/* sprofil_regions.h - profiles of many regions, and what their counts must be */
#ifndef PROFIL_TEST_SPROFIL_REGIONS_H
#define PROFIL_TEST_SPROFIL_REGIONS_H

#include <stddef.h>
#include <sys/profil.h>
#include <sys/time.h>

#include "daemon.h"
#include "kernel_ticks.h"

#define FAST_FLAGS(flags) ((flags) | PROF_FAST)

/* sprofil() that must succeed, and its end. */
void regions_profile(struct prof *region, int n, struct timeval *tick, unsigned int flags);
void regions_off(void);

/* A region for the caller's loops from @first on, as many as @buf has counters. */
static inline struct prof loops_into(void *buf, size_t bytes, unsigned int first,
				     unsigned long scale)
{
	return (struct prof){
		.pr_base = buf, .pr_size = bytes, .pr_off = loop_at(first), .pr_scale = scale
	};
}

/* In the functions below the caller's threads work in loops by @way, at the fast rate. */

/* Two regions and an overflow bin: each pc is counted in its own region, all others in the bin. */
void regions_apart(const struct daemon *d, const struct ticks_way *way);

/*
 * sprofil() must return the length of a tick, of 10 ms, at which the process works by @slow, and at
 * the fast rate.
 */
void regions_tick_length(const struct ticks_way *slow, const struct ticks_way *fast);

/* With another daemon than @d, which has no option of the fast rate. */
void regions_default_tick(struct daemon *d, const struct ticks_way *way);

void regions_of_two_threads(const struct daemon *d, const struct ticks_way *way);

/* Reads of /dev/zero spend all their time in the kernel; it is counted at the system call. */
void regions_of_system_call(const struct daemon *d, const struct ticks_way *way);

#endif
