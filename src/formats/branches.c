/* branches.c - the records of taken branches in a profile, for formats that take branches */
#include <errno.h>
#include <stdlib.h>

#include "branches.h"
#include "core/observe_maps.h"

#define FRAMES 3

/* The node of the frame at or above @at, which symbolize() may have added inlined functions to. */
static __u32 frame_at(const struct call_tree *t, __u32 at)
{
	while (at >= CALL_ROOTS && call_tree_is_inlined(t, at))
		at = t->node[at].parent;
	return at;
}

/*
 * Reads the record of node @at. False: it has another number of frames, as without room for all, or
 * the file says what the kernel does not count.
 */
static bool read_one(struct branch *b, const struct call_tree *t, __u32 at)
{
	const struct call_node *node[FRAMES + 1]; /* innermost first */
	size_t n = 0;

	*b = (struct branch){ .count = t->node[at].count };
	for (at = frame_at(t, at); at >= CALL_ROOTS && n <= FRAMES;
	     at = frame_at(t, t->node[at].parent))
		node[n++] = &t->node[at];
	if (n < FRAMES - 1 || n > FRAMES)
		return false;
	b->runs = n == FRAMES;
	b->from = node[n - 1]->offset - 1;
	b->from_object = node[n - 1]->object;
	b->to = node[n - 2]->offset - b->runs;
	b->object = node[n - 2]->object;
	b->end = node[0]->offset;
	return !b->runs || (node[0]->object == b->object && b->end - b->to < PROFIL_BRANCH_RUN_MAX);
}

int branches_read(struct branch **out, size_t *n, const struct profile *p)
{
	const struct call_tree *t = &p->calls;
	struct branch *all = calloc(t->n + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	*n = 0;
	for (__u32 i = CALL_ROOTS; i < t->n; i++)
		*n += t->node[i].count && read_one(&all[*n], t, i);
	*out = all;
	return 0;
}

int branches_add(struct call_tree *t, const struct branch *b)
{
	__u32 at = call_root(CALL_WHOLE, CALL_NO_STATE);
	int err = call_tree_add(t, at, b->from_object, b->from + 1, &at)
			  ?: call_tree_add(t, at, b->object, b->to + b->runs, &at);

	if (!err && b->runs)
		err = call_tree_add(t, at, b->object, b->end, &at);
	return err ? err : call_tree_count(t, at, b->count);
}
