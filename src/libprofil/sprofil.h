/* sprofil.h - many histograms at once, as IRIX and glibc have it */
#ifndef PROFIL_SPROFIL_H
#define PROFIL_SPROFIL_H

#include <stddef.h>
#include <sys/time.h>

#define SPROFIL_UINT 1
#define SPROFIL_FAST 2

/*
 * glibc's, whose pr_size and pr_scale are wider than IRIX's, at the same places; what an IRIX
 * caller leaves in the upper halves is not looked at.
 */
struct prof {
	void *pr_base;
	size_t pr_size;
	size_t pr_off;
	unsigned long pr_scale;
};

/* What IRIX says and glibc does not. */
enum sprofil_rules { SPROFIL_GLIBC, SPROFIL_IRIX };

/*
 * Starts, between call_enter() and call_leave(), what a sprofil of these arguments asks for.
 * Returns 0 or a negative errno, and then what was is still on: -E2BIG, -EFAULT, -EINVAL, or
 * request.h's.
 */
int sprofil_start(enum sprofil_rules rules, const struct prof *profp, int profcnt,
		  struct timeval *tvp, unsigned int flags);

#endif
