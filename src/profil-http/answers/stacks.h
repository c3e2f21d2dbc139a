/* stacks.h - the call stacks of a difference */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_STACKS_H
#define PROFIL_PROFIL_HTTP_ANSWERS_STACKS_H

#include "profil-http/machine/difference.h"

struct stacks {
	struct call_tree tree; /* with the objects of the names */
	struct places places;  /* of all frames; their counts mean nothing */
};

/*
 * @n must be updated from the source of @d, which has call stacks. Returns 0 or -ENOMEM;
 * stacks_fini() in any case.
 */
int stacks_init(struct stacks *s, const struct names *n, const struct difference *d);

/*
 * The place of node @at of the tree, as innermost frame or as @caller: the latter is in the middle
 * of the call instruction, as pprof wants it.
 */
struct place stacks_place(const struct stacks *s, __u32 at, bool caller);

void stacks_fini(struct stacks *s);

#endif
