/* extents.h - an address for each place: objects laid out one behind the other */
#ifndef PROFIL_EXTENTS_H
#define PROFIL_EXTENTS_H

#include "profile.h"

/*
 * Where an object would have been loaded, had it been a process of its own: a profile has no
 * addresses, as they differ with every run.
 */
struct extent {
	__u64 start; /* address; 0: no tick fell there */
	__u64 end;
	__u64 offset; /* of start in the object */
};

/* Makes an extent for each object of @p; the caller frees them. NULL: for want of memory. */
struct extent *extents_new(const struct profile *p);

static inline __u64 extent_address(const struct extent *e, __u64 offset)
{
	return e->start + (offset - e->offset);
}

#endif
