/* places.h - sample counts by place, in a hash table */
#ifndef PROFIL_PROFILE_PLACES_H
#define PROFIL_PROFILE_PLACES_H

#include <stddef.h>
#include <linux/types.h>

/*
 * Samples of one group at one place of one object. @offset is a file offset, independent of the
 * load address; in the kernel relative to its symbol _text; in anonymous memory an address.
 */
struct place {
	__u64 offset;
	__u64 count;  /* 0: an empty slot */
	__u32 object; /* index in the profile's objects */
	__u32 width;  /* bytes from @offset that share the count; 0: anywhere in the object */
	__u32 group;  /* index in the profile's groups; 0: no group */
};

/* Zeroed, it is empty. */
struct places {
	struct place *slot;
	size_t room; /* number of slots, a power of two */
	size_t n;    /* used slots */
	__u64 sum;   /* of all counts */
};

void places_fini(struct places *t);

/* Adds place->count at @place. This and the following return 0 or -ENOMEM. */
int places_add(struct places *t, const struct place *place);

/* Adds all of @from. */
int places_add_all(struct places *t, const struct places *from);

/* Adds to @t the counts of @now minus those of @last. */
int places_add_difference(struct places *t, const struct places *last, const struct places *now);

/* The samples at @place; ignores place->count. */
__u64 places_count(const struct places *t, const struct place *place);

/* The samples anywhere in an object: those at places of width 0. */
__u64 places_anywhere(const struct places *t);

/* The first used slot from @at on; NULL: none. See places_each(). */
const struct place *places_from(const struct places *t, size_t at);

#define places_each(place, t)                                        \
	for (const struct place *place = places_from((t), 0); place; \
	     place = places_from((t), (size_t)(place - (t)->slot) + 1))

/*
 * Sorted by object, offset, width and group; the caller frees the t->n places. NULL: out of memory.
 */
struct place *places_sorted(const struct places *t);

#endif
