/* merge.h - the sum of several profiles that were recorded separately */
#ifndef PROFIL_PROFILE_MERGE_H
#define PROFIL_PROFILE_MERGE_H

#include "profile.h"

/* Initially all zero but @into, an empty profile. */
struct merge {
	struct profile *into;
	size_t added;  /* number of profiles */
	size_t sorted; /* functions of @into that are sorted and merged already */
	__u32 *slot;   /* hash table of the groups of @into: indices; 0: free */
	size_t room;
	__u32 *object_slot; /* the same of its objects: indices + 1 */
	size_t object_room;
	__u32 *frame_slot; /* the same of the frames of its stacks */
	size_t frame_room;
	bool of_hosts; /* the profiles added are of more than one host */
};

/*
 * Adds @from, which is symbolized: its samples with their stacks, and those objects, groups and
 * functions that have samples. Objects with the same path and build id are merged, as are groups
 * with the same fields and host. Returns 0, -ENOMEM, or -EDOM if samples of @from stand for another
 * time or event than those of @into.
 */
int merge_add(struct merge *m, const struct profile *from);

/*
 * Completes @into: merges and sorts its functions. Frees what is not part of it. Returns 0 or
 * -ENOMEM.
 */
int merge_end(struct merge *m);

#endif
