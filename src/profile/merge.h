/* merge.h - the sum of several profiles that were recorded separately */
#ifndef PROFIL_PROFILE_MERGE_H
#define PROFIL_PROFILE_MERGE_H

#include "base/index_slots.h"

#include "profile.h"

/* Initially all zero but @into, an empty profile. */
struct merge {
	struct profile *into;
	size_t added;		    /* number of profiles */
	size_t sorted;		    /* functions of @into that are sorted and merged already */
	struct index_slots groups;  /* of @into, by index */
	struct index_slots objects; /* by index + 1, as the frames of its stacks */
	struct index_slots frames;
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
