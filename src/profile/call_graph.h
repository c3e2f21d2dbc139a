/* call_graph.h - trees of callers or callees, by function */
#ifndef PROFIL_PROFILE_CALL_GRAPH_H
#define PROFIL_PROFILE_CALL_GRAPH_H

#include <stdbool.h>

#include "call_tree.h"

#define CALL_GRAPH_NONE (~(__u32)0)

/* A function in one calling context. Children are sorted by total, largest first. */
struct call_graph_node {
	/*
	 * Index in the call tree's frames; nframes + a call_root(): the state, and why a stack is
	 * truncated; CALL_GRAPH_NONE: the root.
	 */
	__u32 frame;
	__u32 parent; /* CALL_GRAPH_NONE: the root */
	__u32 child;  /* first child; CALL_GRAPH_NONE: none */
	__u32 next;   /* next sibling; CALL_GRAPH_NONE: none */
	__u64 self;   /* samples in the function itself */
	__u64 total;  /* samples in it and its children */
};

/* node[0] is the root, with the totals. */
struct call_graph {
	struct call_graph_node *node;
	size_t n;
};

/*
 * Samples of a function in all contexts. A sample counts once, even if recursion puts the function
 * on its stack several times.
 */
struct call_graph_sum {
	__u64 self;
	__u64 total;
};

/*
 * The whole tree, from the start of the threads; truncated stacks are below their reason. This and
 * the following return 0 or -ENOMEM.
 */
int call_graph_init(struct call_graph *g, const struct call_tree *t);

/*
 * The callees of the @wanted functions: stacks from their outermost wanted frame inwards. @wanted
 * has an element for each frame of @t.
 */
int call_graph_callees(struct call_graph *g, const struct call_tree *t, const bool *wanted);

/*
 * The callers of the @wanted functions: the same stacks from that frame outwards, to the start of
 * the thread or the reason of truncation. @self are samples without a caller.
 */
int call_graph_callers(struct call_graph *g, const struct call_tree *t, const bool *wanted);

/*
 * What woke up the threads that slept in the @wanted functions or below them: the stacks of the
 * wakers from their innermost frame outwards, without their state.
 */
int call_graph_wakers(struct call_graph *g, const struct call_tree *t, const bool *wanted);

void call_graph_fini(struct call_graph *g);

/*
 * Says for each node whether it is one of the @n with the most samples, and so are its callers. The
 * caller frees the array. Returns 0 or -ENOMEM.
 */
int call_graph_largest(bool **out, const struct call_graph *g, size_t n);

/*
 * The node after @at, each before what it calls: below it, if @below, or else beside it or one of
 * its callers; CALL_GRAPH_NONE: none. Changes @depth by the levels between the two.
 */
__u32 call_graph_next(const struct call_graph *g, __u32 at, bool below, size_t *depth);

/* The sums of each frame of @t, in an array that the caller frees. NULL: out of memory. */
struct call_graph_sum *call_graph_sums(const struct call_tree *t);

#endif
