/* synthetic_addresses.h - an address for each place: objects one after the other */
#ifndef PROFIL_FORMATS_SYNTHETIC_ADDRESSES_H
#define PROFIL_FORMATS_SYNTHETIC_ADDRESSES_H

#include "profile/profile.h"

/*
 * A profile has file offsets, no addresses, since these differ with each run. Formats that need
 * addresses get the segments of objects at invented ones.
 */
struct extent {
	__u64 start; /* address; 0: it has no samples */
	__u64 end;
	__u64 offset; /* in the object, of @start */
	__u32 object;
};

struct extents {
	const struct profile *profile;
	struct extent *extent; /* of each object: one per segment, and one for offsets in none */
	size_t n;
	size_t *first; /* of each object, in @extent */
};

/* Makes the extents of @p. Returns 0 or -ENOMEM; extents_fini() in any case. */
int extents_init(struct extents *e, const struct profile *p);
void extents_fini(struct extents *e);

/* The extent of an offset in an object. */
struct extent *extents_of(const struct extents *e, __u32 object, __u64 offset);

__u64 extents_address(const struct extents *e, __u32 object, __u64 offset);

#endif
