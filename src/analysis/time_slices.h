/* time_slices.h - stacks by slices of time, in bounded memory */
#ifndef PROFIL_ANALYSIS_TIME_SLICES_H
#define PROFIL_ANALYSIS_TIME_SLICES_H

#include "profile/profile.h"

/*
 * At most @max slices of @slice_ns each, from the start until now: the nodes that had samples, and
 * how many. When there are @max slices, or no room for more nodes, pairs of slices are merged and
 * slice_ns doubles. Zeroed, it has no slices.
 */
struct slices {
	size_t max; /* even */
	size_t n;
	__u64 slice_ns;
	struct call_tree part; /* only its times: those of nodes of the tree that is taken */
	__u64 *seen;	       /* of each node: its samples until the last slice */
	size_t nseen;
};

void slices_fini(struct slices *s);

/* The end of the current slice, from the start. */
__u64 slices_next_ns(const struct slices *s);

/*
 * Ends a slice. @now has all samples so far; its nodes keep their indices, and others follow. A
 * node that has fewer than before gets none until it has more again, as where the time of a sleep
 * that has not ended was estimated. Returns 0 or -ENOMEM.
 */
int slices_take(struct slices *s, const struct call_tree *now);

/*
 * Ends the last slice: gives the stacks of @p, which are not symbolized and have all samples, their
 * times. @last is the tree that was taken last. The times of each node add up to its samples; those
 * without a frame, which slices_take() may not have had, are spread evenly. Returns 0 or -ENOMEM.
 */
int slices_into(const struct slices *s, const struct call_tree *last, struct profile *p);

/*
 * Sets the slices of the functions of @p from the times of its stacks; without such there are none
 * any more. Returns 0 or -ENOMEM.
 */
int slices_of_functions(struct profile *p);

#endif
