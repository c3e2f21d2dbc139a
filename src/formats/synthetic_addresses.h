/* synthetic_addresses.h - an address for each place: objects one after the other */
#ifndef PROFIL_FORMATS_SYNTHETIC_ADDRESSES_H
#define PROFIL_FORMATS_SYNTHETIC_ADDRESSES_H

#include "profile/profile.h"

/*
 * A profile has file offsets, no addresses, since these differ with each run. Formats that need
 * addresses get objects at invented ones.
 */
struct extent {
	__u64 start; /* address; 0: the object has no samples */
	__u64 end;
	__u64 offset; /* in the object, of @start */
};

/* Makes an extent for each object of @p; the caller frees them. NULL: out of memory. */
struct extent *extents_new(const struct profile *p);

static inline __u64 extent_address(const struct extent *e, __u64 offset)
{
	return e->start + (offset - e->offset);
}

#endif
