/* each_stack.h - iterates over the stacks of a profile, for formats of stacks */
#ifndef PROFIL_PROFILE_EACH_STACK_H
#define PROFIL_PROFILE_EACH_STACK_H

#include "profile.h"

/*
 * Frames are those of the call tree, followed by frames for the reasons of truncation (outermost in
 * a truncated stack) and for samples without a stack.
 */
struct stack {
	const __u32 *frame; /* innermost first */
	const __u32 *node;  /* nodes of the call tree; below CALL_ROOTS: no place */
	size_t n;
	__u64 samples;
	__u32 at;    /* the node that has the samples, or a root; CALL_NO_NODE: none */
	__u32 group; /* index in the profile's groups; 0: stacks do not distinguish them */
};

/* The frames behind those of truncation: of samples without a stack. */
enum stack_without { STACK_UNMATCHED, STACK_NONE, STACK_LOST, STACK_WITHOUTS };

typedef int stack_fn(void *arg, const struct stack *s);

/*
 * Calls @fn for each stack with samples, which add up to the profile's total, until @fn returns
 * something other than 0. Returns that, 0, or -ENOMEM.
 */
int each_stack(const struct profile *p, stack_fn *fn, void *arg);

/* The frame of a waker without a stack, an enum call_waker; 0: unknown. Not in stack_frames(). */
__u32 stack_frame_waker(const struct call_tree *t, __u32 waker);

/* The frame of samples that are at a root, without any of their own. */
__u32 stack_frame_root(const struct profile *p, __u32 root);

/* The frame of samples without a stack. */
__u32 stack_frame_without(const struct profile *p, enum stack_without what);

/* The number of frames. stack_frame_name() writes the name of one and returns @out. */
size_t stack_frames(const struct profile *p);
const char *stack_frame_name(const struct profile *p, size_t frame, char *out, size_t bytes);

/* The path of the frame's object; "": none. */
const char *stack_frame_path(const struct profile *p, size_t frame);

#endif
