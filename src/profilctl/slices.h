/* slices.h - when it was hot: a profile in slices of time, in constant memory */
#ifndef PROFIL_SLICES_H
#define PROFIL_SLICES_H

#include "profile.h"
#include "symbolize.h"

/*
 * At most @max slices of @slice_ns each. When they are full each two become one and the time of a
 * slice doubles: they always reach from the beginning up to now.
 */
struct slices {
	size_t max; /* even */
	size_t n;
	__u64 slice_ns;
	struct profile **slice;
	struct profile *last; /* all that was counted up to the last one */
};

/* Returns 0 or -ENOMEM. slices_fini() in any case. */
int slices_init(struct slices *s, size_t max, __u64 slice_ns);

void slices_fini(struct slices *s);

/* When the slice that is under way ends, counted from the beginning. */
__u64 slices_next_ns(const struct slices *s);

/*
 * Ends a slice. @now is all that was counted so far; it is taken over, also when it fails, and was
 * made by profile_borrow(). Returns 0 or -ENOMEM.
 */
int slices_take(struct slices *s, struct profile *now);

/*
 * Puts into the functions of @p, which is symbolized with @cache, when they were hot, and makes its
 * bands. Returns 0 or -ENOMEM.
 */
int slices_into(const struct slices *s, struct profile *p, struct symbolize_cache *cache);

#endif
