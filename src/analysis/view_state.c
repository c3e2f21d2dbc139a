/* view_state.c - the part of a profile of threads' time in some of their states */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "profile/stack_ends.h"

#include "sample_location.h"
#include "view_state.h"

unsigned int view_states(const char *text)
{
	unsigned int states = 0;

	while (*text) {
		size_t n = strcspn(text, ",");
		char name[16] = "";
		enum call_state state;

		if (n < sizeof(name))
			memcpy(name, text, n);
		state = stack_state_of(name);
		if (state == CALL_STATES)
			return 0;
		states |= 1u << state;
		text += n + (text[n] == ',');
	}
	return states;
}

static int add_place(struct profile *p, const struct call_node *n)
{
	struct place place = { .object = n->object, .offset = n->offset, .count = n->count };

	/* The offsets of a kernel without addresses are all 0: anywhere in it. */
	place.width = n->offset || p->objects[n->object].kind != OBJECT_KERNEL;
	return places_add(&p->places, &place);
}

/*
 * Copies the stacks of @p in @states to @t. @plain: below the roots without a state. Their
 * innermost frames become the only places of @p.
 */
static int select_stacks(struct profile *p, struct call_tree *t, unsigned int states, bool plain)
{
	const struct call_tree *from = &p->calls;
	__cleanup(freep) __u32 *to = calloc(from->n + 1, sizeof(*to));
	int err = to ? 0 : -ENOMEM;

	for (__u32 i = 0; i < from->n && !err; i++) {
		const struct call_node *n = &from->node[i];
		enum call_state state = call_root_state(call_tree_root(from, i));

		to[i] = plain && i < CALL_ROOTS ? call_root(call_root_end(i), CALL_NO_STATE) : i;
		if (!(states & 1u << state))
			continue;
		if (i < CALL_ROOTS) {
			err = n->count ? call_tree_count(t, to[i], n->count) : 0;
			p->unmatched += n->count;
			continue;
		}
		err = call_tree_add(t, to[n->parent], n->object, n->offset, &to[i]);
		if (err)
			break;
		t->node[to[i]].frame = n->frame;
		if (n->count)
			err = call_tree_count(t, to[i], n->count) ?: add_place(p, n);
	}
	return err;
}

static int rename_event(struct profile *p, unsigned int states)
{
	const unsigned int off_cpu = 1u << CALL_RUNNABLE | 1u << CALL_ASLEEP;

	if (states != 1u << CALL_RUNNING && states != off_cpu)
		return 0;
	free(p->event);
	p->event = states == off_cpu ? strdup(PROFILE_OFF_CPU) : NULL;
	if (states == off_cpu && !p->event)
		return -ENOMEM;
	p->period = p->event ? p->tick_ns : 0;
	return 0;
}

int view_state(struct profile *p, unsigned int states)
{
	struct call_tree selected = { 0 };
	struct spots s;
	int err;

	if (!profile_is_wall(p))
		return -ENOMSG;
	err = rename_event(p, states);
	places_fini(&p->places);
	places_fini(&p->folded);
	places_fini(&p->sums);
	p->unmatched = p->lost = p->image_full = p->place_full = p->node_full = 0;
	if (!err)
		err = select_stacks(p, &selected, states, !profile_is_wall(p));
	if (err) {
		call_tree_fini(&selected);
		return err;
	}
	selected.frame = steal(p->calls.frame);
	selected.nframes = p->calls.nframes;
	p->calls.nframes = 0;
	call_tree_fini(&p->calls);
	p->calls = selected;
	p->binned = p->places.sum;
	p->total = p->binned + p->unmatched;
	err = spots_init(&s, p, false);
	if (!err)
		spots_count_functions(p, &s);
	spots_fini(&s);
	profile_sort_functions(p);
	return err;
}
