/* flame_tree.h - the tree of a flame graph, of one profile or two */
#ifndef PROFIL_PROFILE_FLAME_TREE_H
#define PROFIL_PROFILE_FLAME_TREE_H

#include <stdbool.h>

#include "profile.h"

#define FLAME_SIDES 2

/*
 * Functions with the same name and object are one frame, so profiles of different builds share
 * frames. Frames with object "" are the reasons of truncation and samples without a stack.
 */
struct flame_frame {
	char *name;
	const char *object; /* without its directory; owned by the profile, which must outlive the
			       tree */
};

struct flame_tree {
	struct call_tree tree; /* below CALL_WHOLE; a node's offset is its frame's index */
	struct flame_frame *frame;
	size_t nframes;
	__u32 *of; /* of each node of the first profile's stacks: where its samples are */
	__u64 *self[FLAME_SIDES];  /* of each node */
	__u64 *total[FLAME_SIDES]; /* of each node, with its children; CALL_WHOLE: all samples */
};

/*
 * @b NULL: one profile only, the second side is empty. Returns 0 or -ENOMEM. flame_tree_fini() in
 * any case.
 */
int flame_tree_init(struct flame_tree *t, const struct profile *a, const struct profile *b);
void flame_tree_fini(struct flame_tree *t);

/* The width of a node: the mean of its shares in the sides that have samples. */
double flame_tree_width(const struct flame_tree *t, size_t node);

/*
 * *@order has all nodes sorted by parent, then width, widest first. The children of node i are at
 * (*@first)[i] to (*@first)[i + 1] - 1. The caller frees both. Returns 0 or -ENOMEM.
 */
int flame_tree_order(const struct flame_tree *t, __u32 **order, __u32 **first);

#endif
