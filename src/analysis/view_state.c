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
 * Removes the samples of stacks that are in none of @states. The innermost frames of the others
 * become the only places of @p. @plain: these stacks end at the roots without a state.
 */
static int select_stacks(struct profile *p, unsigned int states, bool plain)
{
	struct call_tree *t = &p->calls;
	__cleanup(freep) __u32 *root = calloc(t->n + 1, sizeof(*root));
	int err = root ? 0 : -ENOMEM;

	for (__u32 i = 0; i < t->n && !err; i++) {
		struct call_node *n = &t->node[i];
		__u32 bare = call_root(call_root_end(i), CALL_NO_STATE);

		root[i] = i < CALL_ROOTS ? i : root[n->parent];
		if (!(states & 1u << call_root_state(root[i])))
			n->count = 0;
		else if (n->count && i >= CALL_ROOTS)
			err = add_place(p, n);
		else
			p->unmatched += n->count;
		if (plain && i >= CALL_ROOTS && n->parent < CALL_ROOTS)
			n->parent = call_root(call_root_end(n->parent), CALL_NO_STATE);
		if (plain && i < CALL_ROOTS && i != bare) {
			t->node[bare].count += n->count;
			n->count = 0;
		}
	}
	return err ? err : call_tree_prune(t);
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
		err = select_stacks(p, states, !profile_is_wall(p));
	if (err)
		return err;
	p->binned = p->places.sum;
	p->total = p->binned + p->unmatched;
	err = spots_init(&s, p, NULL);
	if (!err)
		spots_count_functions(p, &s);
	spots_fini(&s);
	profile_sort_functions(p);
	return err;
}
