/* time_slices.h - a profile divided into slices of time, in bounded memory */
#ifndef PROFIL_ANALYSIS_TIME_SLICES_H
#define PROFIL_ANALYSIS_TIME_SLICES_H

#include "profile/profile.h"
#include "symbols/symbolize.h"

/*
 * At most @max slices of @slice_ns each, from the start until now. When @max is reached, pairs of
 * slices are merged and slice_ns doubles.
 */
struct slices {
	size_t max; /* even */
	size_t n;
	__u64 slice_ns;
	struct profile **slice;
	struct profile *last; /* all counts at the end of the last slice */
};

/* Returns 0 or -ENOMEM. slices_fini() in any case. */
int slices_init(struct slices *s, size_t max, __u64 slice_ns);

void slices_fini(struct slices *s);

/* The end of the current slice, from the start. */
__u64 slices_next_ns(const struct slices *s);

/*
 * Ends a slice. @now, from profile_borrow(), has all counts so far. Takes ownership of @now, even
 * on failure. Returns 0 or -ENOMEM.
 */
int slices_take(struct slices *s, struct profile *now);

/*
 * Fills in the slices of the functions of @p, which is symbolized with @cache, and its bands.
 * Returns 0 or -ENOMEM.
 */
int slices_into(const struct slices *s, struct profile *p, struct symbolize_cache *cache);

#endif
