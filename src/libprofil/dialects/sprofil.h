/* sprofil.h - several histograms at once, by IRIX's and glibc's rules */
#ifndef PROFIL_LIBPROFIL_DIALECTS_SPROFIL_H
#define PROFIL_LIBPROFIL_DIALECTS_SPROFIL_H

#include <stddef.h>
#include <sys/time.h>

#define SPROFIL_UINT 1
#define SPROFIL_FAST 2

/*
 * glibc's struct. IRIX's pr_size and pr_scale are narrower, at the same offsets; the upper halves
 * of an IRIX caller's are ignored.
 */
struct prof {
	void *pr_base;
	size_t pr_size;
	size_t pr_off;
	unsigned long pr_scale;
};

/* Whose rules apply to overlapping regions. */
enum sprofil_rules { SPROFIL_GLIBC, SPROFIL_IRIX };

/*
 * Starts the profile of an sprofil() with these arguments; called between call_enter() and
 * call_leave(). Returns 0, or a negative errno (-E2BIG, -EFAULT, -EINVAL or daemon_call.h's), and
 * the present profile stays on.
 */
int sprofil_start(enum sprofil_rules rules, const struct prof *profp, int profcnt,
		  struct timeval *tvp, unsigned int flags);

#endif
