/* each_stack.c - iterates over the stacks of a profile, for formats of stacks */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"

#include "each_stack.h"
#include "stack_ends.h"

static const char *const without[STACK_WITHOUTS + CALL_WAKERS] = {
	"[unmatched]",	   "[no stack]",  "[lost]",
	"[not known]",	   "[interrupt]", "[thread of the kernel]",
	"[not permitted]",
};

__u32 stack_frame_without(const struct profile *p, enum stack_without what)
{
	return (__u32)p->calls.nframes + CALL_ROOTS + what;
}

__u32 stack_frame_waker(const struct call_tree *t, __u32 waker)
{
	return (__u32)(t->nframes + CALL_ROOTS + STACK_WITHOUTS + waker);
}

__u32 stack_frame_root(const struct profile *p, __u32 root)
{
	return call_root_state(root)  ? (__u32)p->calls.nframes + root
	       : root == CALL_NOWHERE ? stack_frame_without(p, STACK_UNMATCHED)
				      : stack_frame_without(p, STACK_NONE);
}

size_t stack_frames(const struct profile *p)
{
	return stack_frame_without(p, STACK_WITHOUTS);
}

const char *stack_frame_name(const struct profile *p, size_t frame, char *out, size_t bytes)
{
	const char *name;

	if (frame < p->calls.nframes)
		return call_frame_name(p, (__u32)frame, out, bytes);
	frame -= p->calls.nframes;
	name = frame < CALL_ROOTS ? stack_root_frame((__u32)frame) : without[frame - CALL_ROOTS];
	snprintf(out, bytes, "%s", name ? name : "[whole]");
	return out;
}

const char *stack_frame_path(const struct profile *p, size_t frame)
{
	return frame < p->calls.nframes ? p->objects[p->calls.frame[frame].object].path : "";
}

/* Reports samples without a stack as a stack of one frame. */
static int bare(const struct profile *p, stack_fn *fn, void *arg, enum stack_without what,
		__u64 samples)
{
	__u32 frame = stack_frame_without(p, what), node = 0;
	struct stack s = { &frame, &node, 1, samples, CALL_NO_NODE, 0 };

	return samples ? fn(arg, &s) : 0;
}

/* The stack of node @at, in arrays with room for all nodes. */
static struct stack stack_of(const struct profile *p, __u32 at, __u32 *frame, __u32 *node)
{
	const struct call_tree *t = &p->calls;
	struct stack s = { frame, node, 0, t->node[at].count, at, t->node[at].group };

	if (at < CALL_ROOTS) {
		node[s.n] = 0;
		frame[s.n++] = stack_frame_root(p, at);
	}
	for (; at >= CALL_ROOTS; at = t->node[at].parent) {
		node[s.n] = at;
		frame[s.n++] = t->node[at].frame;
	}
	if (at != CALL_WHOLE && node[0]) {
		node[s.n] = at;
		frame[s.n++] = (__u32)t->nframes + at;
	}
	return s;
}

/*
 * Reports the samples that are in no stack: those in no mapping first, as far as the tree does not
 * have them, so that the parts of an interval add up to the whole.
 */
static int all_bare(const struct profile *p, stack_fn *fn, void *arg)
{
	__u64 sum = call_tree_sum(&p->calls), rest = p->total - p->lost;
	__u64 unmatched = p->unmatched, known = p->calls.n ? p->calls.node[CALL_NOWHERE].count : 0;

	rest = rest > sum ? rest - sum : 0;
	unmatched = unmatched > known ? unmatched - known : 0;
	unmatched = unmatched < rest ? unmatched : rest;
	return bare(p, fn, arg, STACK_UNMATCHED, unmatched)
		       ?: bare(p, fn, arg, STACK_NONE, rest - unmatched)
			       ?: bare(p, fn, arg, STACK_LOST, p->lost);
}

int each_stack(const struct profile *p, stack_fn *fn, void *arg)
{
	__cleanup(freep) __u32 *frame = calloc(p->calls.n + 2, sizeof(*frame));
	__cleanup(freep) __u32 *node = calloc(p->calls.n + 2, sizeof(*node));
	int err = frame && node ? 0 : -ENOMEM;

	for (__u32 i = 0; !err && i < p->calls.n; i++) {
		struct stack s;

		if (!p->calls.node[i].count)
			continue;
		s = stack_of(p, i, frame, node);
		err = fn(arg, &s);
	}
	return err ? err : all_bare(p, fn, arg);
}
