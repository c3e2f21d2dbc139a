/* owners.h - what ran the objects of a profile whose places have no groups */
#ifndef PROFIL_PROFILE_OWNERS_H
#define PROFIL_PROFILE_OWNERS_H

#include "profile.h"

/* The command, unit and cgroup that ran an object; NULL if there are several, or if unknown. */
struct owner {
	const char *command;
	const char *unit;
	const char *cgroup;
	bool seen;
};

static inline struct owner owner_of_group(const struct group *g)
{
	return (struct owner){ g->command, g->unit, g->cgroup, true };
}

/*
 * The owner of each object of @p by @sums, the samples of each group in each object. If all samples
 * of an object have the same command, unit or cgroup, so do its places. The caller frees the
 * array; NULL: out of memory.
 */
struct owner *owners_find(const struct profile *p, const struct places *sums);

#endif
