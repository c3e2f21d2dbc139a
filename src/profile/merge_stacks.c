/* merge_stacks.c - the sum of the stacks of several profiles */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "merge.h"
#include "merge_parts.h"

static bool is_same_frame(const struct call_frame *a, const struct call_frame *b)
{
	return a->object == b->object && a->offset == b->offset && !a->name == !b->name &&
	       (!a->name || !strcmp(a->name, b->name));
}

/* The slot of the frame, or the free one for it. Inlined functions differ by name only. */
static __u32 *slot_of(const struct merge *m, const struct call_frame *f)
{
	const struct index_slots *s = &m->frames;
	__u64 h = (f->offset ^ (__u64)f->object << 40) * 0x9e3779b97f4a7c15u;
	size_t at = index_slots_first(s, hash_text(h, f->name));

	while (s->slot[at] && !is_same_frame(&m->into->calls.frame[s->slot[at] - 1], f))
		at = index_slots_next(s, at);
	return &s->slot[at];
}

static int make_room(struct merge *m)
{
	const struct call_tree *t = &m->into->calls;
	int anew = index_slots_reserve(&m->frames, t->nframes);

	for (size_t i = 0; anew > 0 && i < t->nframes; i++)
		*slot_of(m, &t->frame[i]) = (__u32)i + 1;
	return anew < 0 ? anew : 0;
}

int merge_frame(struct merge *m, const struct call_frame *like, __u32 *index)
{
	struct call_frame own = *like;
	int err = make_room(m);
	__u32 *slot;

	if (err < 0)
		return err;
	slot = slot_of(m, &own);
	if (*slot) {
		*index = *slot - 1;
		return 0;
	}
	own.name = own.name ? strdup(own.name) : NULL;
	if (!own.name && like->name)
		return -ENOMEM;
	err = call_tree_add_frame(&m->into->calls, &own, index);
	*slot = err ? 0 : *index + 1;
	return err;
}

int merge_frame_of(struct merge *m, const struct numbers *n, const struct profile *from,
		   __u32 frame, __u32 *index)
{
	struct call_frame own = from->calls.frame[frame];
	int err;

	if (n->frame[frame]) {
		*index = n->frame[frame] - 1;
		return 0;
	}
	err = merge_object(m, n, from, own.object, &own.object) ?:
	      merge_offset(m, from, from->calls.frame[frame].object, own.object, &own.offset) ?:
	      merge_frame(m, &own, index);
	n->frame[frame] = err ? 0 : *index + 1;
	return err;
}

static int add_node(struct merge *m, const struct numbers *n, const struct profile *from,
		    const struct call_node *node, __u32 parent, __u32 *index)
{
	struct call_tree *t = &m->into->calls;
	struct call_node own = *node;
	__u32 frame;
	int err = merge_object(m, n, from, node->object, &own.object) ?:
		  merge_offset(m, from, node->object, own.object, &own.offset) ?:
		  (node->group ? merge_group_of(m, n, from, node->group, &own.group) : 0) ?:
		  call_tree_add_like(t, parent, &own, index) ?:
		  merge_frame_of(m, n, from, node->frame, &frame);

	if (!err)
		t->node[*index].frame = frame;
	return err;
}

int merge_stacks(struct merge *m, const struct numbers *n, const struct profile *from)
{
	const struct call_tree *t = &from->calls;
	__cleanup(freep) __u32 *to = calloc(t->n + 1, sizeof(*to));
	int err = to ? 0 : -ENOMEM;
	__u32 frame;

	for (__u32 i = 0; i < t->n && !err; i++) {
		const struct call_node *node = &t->node[i];

		to[i] = i;
		if (i >= CALL_ROOTS)
			err = add_node(m, n, from, node, to[node->parent], &to[i]);
		else
			err = call_tree_init(&m->into->calls);
		if (!err)
			m->into->calls.node[to[i]].count += node->count;
	}
	for (size_t i = 0; i < t->nwakes && !err; i++)
		err = t->wake[i].lock ? merge_frame_of(m, n, from, t->wake[i].lock - 1, &frame) : 0;
	return err ?: call_tree_add_wakes(&m->into->calls, t, to, n->frame);
}
