/* stacks.c - the call stacks of a difference */
#include <errno.h>

#include "stacks.h"

struct place stacks_place(const struct stacks *s, __u32 at, bool caller)
{
	const struct call_node *node = &s->tree.node[at];
	struct place place = { .object = node->object, .offset = node->offset, .count = 1 };

	/* Offset 0 is no code: anywhere in the object, as in a kernel whose addresses are hidden.
	 */
	if (!place.offset)
		return place;
	place.offset -= caller;
	place.width = 1;
	return place;
}

static int add_place(struct stacks *s, __u32 at, bool caller)
{
	const struct place place = stacks_place(s, at, caller);

	return places_add(&s->places, &place);
}

int stacks_init(struct stacks *s, const struct names *n, const struct difference *d)
{
	int err;

	*s = (struct stacks){ 0 };
	err = stack_reader_add(&n->reader, d->stack, d->nstacks, &s->tree);
	for (__u32 i = CALL_ROOTS; i < s->tree.n && !err; i++) {
		__u32 parent = s->tree.node[i].parent;

		if (s->tree.node[i].count)
			err = add_place(s, i, false);
		if (!err && parent >= CALL_ROOTS)
			err = add_place(s, parent, true);
	}
	return err;
}

void stacks_fini(struct stacks *s)
{
	call_tree_fini(&s->tree);
	places_fini(&s->places);
}
