/* synthetic_addresses.h - an address for each place: invented, or that of its linker */
#ifndef PROFIL_FORMATS_SYNTHETIC_ADDRESSES_H
#define PROFIL_FORMATS_SYNTHETIC_ADDRESSES_H

#include <stdbool.h>

#include "profile/profile.h"

/*
 * A profile has file offsets, no addresses, since these differ with each run. Formats that need
 * addresses get the segments of objects at invented ones, one after the other, or at those of the
 * linker, where objects can be at the same ones.
 */
struct extent {
	__u64 start; /* address */
	__u64 end;
	__u64 offset; /* in the object, of @start */
	__u32 object;
	bool used; /* it has samples */
};

struct extents {
	const struct profile *profile;
	struct extent *extent; /* of each object: one per segment, and one for offsets in none */
	size_t n;
	size_t *first; /* of each object, in @extent */
};

/* Makes the extents of @p. Returns 0 or -ENOMEM; extents_fini() in any case. */
int extents_init(struct extents *e, const struct profile *p);

/*
 * The same with whole segments at their addresses in the file, and the kernel at that of vmlinux,
 * which does not tell where it is loaded. An object without segments is at its offsets.
 */
int extents_init_linked(struct extents *e, const struct profile *p);

void extents_fini(struct extents *e);

/* The extent of an offset in an object. */
struct extent *extents_of(const struct extents *e, __u32 object, __u64 offset);

__u64 extents_address(const struct extents *e, __u32 object, __u64 offset);

#endif
