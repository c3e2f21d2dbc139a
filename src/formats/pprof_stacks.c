/* pprof_stacks.c - the stacks of a profile in pprof's format */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#include "pprof_writer.h"
#include "profile/each_stack.h"

/*
 * A location is a place, with a line for its function and each function inlined there. A node can
 * be two: an innermost frame at its offset, and a caller in the call before its return address.
 */
struct locations {
	struct pprof *w;
	struct call_tree ids; /* places, with two numbers for each object, as leaf and as caller,
				 and their frames as groups */
	__u64 *of;	      /* of each node_as(): its number in @ids + 1; 0: not needed */
	__u64 *id;	      /* of each of these: its location; 0: none yet */
	bool *calls;	      /* of each node: it is a caller */
	const char **file;    /* of each frame */
	__u32 *function;      /* of each frame: its id; 0: none */
	int *line;	      /* of each node_as() that has a location */
	__u32 group;	      /* of all samples whose stacks have none; 0: several */
	size_t nplaces;	      /* locations that are places */
};

static __u32 node_as(__u32 node, bool caller)
{
	return 2 * node + caller;
}

static void locations_fini(struct locations *l)
{
	call_tree_fini(&l->ids);
	free(l->of);
	free(l->id);
	free(l->calls);
	free(l->file);
	free(l->function);
	free(l->line);
}

static int locations_init(struct locations *l, struct pprof *w)
{
	const struct profile *p = w->profile;

	*l = (struct locations){ .w = w,
				 .of = calloc(2 * p->calls.n + 1, sizeof(*l->of)),
				 .calls = calloc(p->calls.n + 1, sizeof(*l->calls)),
				 .file = calloc(stack_frames(p), sizeof(*l->file)),
				 .function = calloc(stack_frames(p), sizeof(*l->function)),
				 .line = calloc(2 * p->calls.n + 1, sizeof(*l->line)) };
	return l->of && l->calls && l->file && l->function && l->line ? 0 : -ENOMEM;
}

/* Each innermost function at a place gets a location, with increasing numbers. */
static int number(struct locations *l, __u32 as)
{
	const struct call_node *n = &l->w->profile->calls.node[as / 2];
	const struct call_node place = { .object = 2 * n->object + as % 2,
					 .offset = n->offset,
					 .group = n->frame };
	__u32 index;
	int err = call_tree_add_like(&l->ids, CALL_WHOLE, &place, &index);

	if (!err)
		l->of[as] = index - CALL_ROOTS + 1;
	return err;
}

static int number_places(struct locations *l)
{
	const struct call_tree *t = &l->w->profile->calls;
	int err = 0;

	for (__u32 i = CALL_ROOTS; i < t->n; i++)
		l->calls[t->node[i].parent] |= !call_tree_is_inlined(t, i);
	for (__u32 i = CALL_ROOTS; i < t->n && !err; i++) {
		if (t->node[i].count)
			err = number(l, node_as(i, false));
		if (l->calls[i] && !err)
			err = number(l, node_as(i, true));
	}
	l->id = calloc(l->ids.n + 2, sizeof(*l->id));
	return err || l->id ? err : -ENOMEM;
}

/*
 * Finds the line of the innermost function of each place; the lines of calls to inlined functions
 * are unknown.
 */
static void find_lines(struct locations *l)
{
	const struct call_tree *t = &l->w->profile->calls;
	__u64 last = 0;

	for (__u32 i = node_as(CALL_ROOTS, false); i < 2 * t->n; i++) {
		const struct call_node *n = &t->node[i / 2];
		const char *file;

		if (l->of[i] <= last) /* not the first node of its location */
			continue;
		last = l->of[i];
		if (!lines_find(lines_store_find(l->w->lines, n->object), n->offset - i % 2, &file,
				&l->line[i]))
			l->line[i] = 0;
		else if (!l->file[n->frame])
			l->file[n->frame] = file;
	}
}

static void functions(struct locations *l)
{
	const struct profile *p = l->w->profile;
	char name[4096];

	for (size_t i = 0; i < stack_frames(p); i++) {
		const struct call_frame *f = i < p->calls.nframes ? &p->calls.frame[i] : NULL;

		/* What is anywhere in an object has offset 0, and no function to be looked up. */
		if (l->w->for_collectors && f && !f->name && f->offset)
			continue;
		l->function[i] =
			proto_function(&l->w->proto, stack_frame_name(p, i, name, sizeof(name)),
				       l->file[i] ? l->file[i] : "");
	}
}

static void line(struct locations *l, __u32 frame, int number)
{
	if (l->function[frame])
		proto_line(&l->w->proto, l->function[frame], number);
}

/*
 * Inlined functions precede the function that contains them. The address of a caller is in its
 * call, not the return address behind it.
 */
static __u64 place(struct locations *l, __u32 as)
{
	struct pprof *w = l->w;
	const struct call_tree *t = &w->profile->calls;
	const struct call_node *n = &t->node[as / 2];
	__u64 offset = n->offset - (as % 2 && n->offset);

	line(l, n->frame, l->line[as]);
	for (__u32 at = as / 2; call_tree_is_inlined(t, at); at = t->node[at].parent)
		line(l, t->node[t->node[at].parent].frame, 0);
	return proto_location(&w->proto, pprof_mapping(w, n->object, offset),
			      offset ? extents_address(&w->extents, n->object, offset) : 0);
}

static int by_place(const void *a, const void *b, void *arg)
{
	__u32 at = *(const __u32 *)a, other = *(const __u32 *)b;
	const struct call_node *node = arg, *x = &node[at / 2], *y = &node[other / 2];

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return at < other ? -1 : at > other;
}

/* Writes places, sorted, which makes the file an eighth smaller, then the frames in no file. */
static int places(struct locations *l)
{
	struct pprof *w = l->w;
	const struct profile *p = w->profile;
	__cleanup(freep) __u32 *at = calloc(2 * p->calls.n + 1, sizeof(*at));
	size_t n = 0;

	if (!at)
		return -ENOMEM;
	for (__u32 i = 0; i < 2 * p->calls.n; i++) {
		if (l->of[i] && !l->id[l->of[i]]++) /* the first node of its location */
			at[n++] = i;
	}
	qsort_r(at, n, sizeof(*at), by_place, p->calls.node);
	for (size_t i = 0; i < n; i++)
		l->id[l->of[at[i]]] = place(l, at[i]);
	l->nplaces = w->proto.nlocations;
	for (size_t i = p->calls.nframes; i < stack_frames(p); i++) {
		line(l, (__u32)i, 0);
		proto_location(&w->proto, w->nowhere, 0);
	}
	return 0;
}

static int sample(void *arg, const struct stack *s)
{
	const struct locations *l = arg;
	struct pprof *w = l->w;
	const struct call_tree *t = &w->profile->calls;
	__cleanup(freep) __u64 *location = calloc(s->n, sizeof(*location));
	size_t n = 0;

	if (!location)
		return -ENOMEM;
	for (size_t i = 0; i < s->n; i++) {
		location[n] = s->node[i] >= CALL_ROOTS
				      ? l->id[l->of[node_as(s->node[i], n > 0)]]
				      : l->nplaces + 1 + (s->frame[i] - t->nframes);
		n++;
		while (s->node[i] >= CALL_ROOTS && call_tree_is_inlined(t, s->node[i]))
			i++; /* part of the same location */
	}
	if (s->node[0] >= CALL_ROOTS)
		pprof_labels(w, t->node[s->node[0]].object, s->group ?: l->group);
	else
		pprof_group_labels(w, s->group ?: l->group);
	proto_sample(&w->proto, location, n, s->samples);
	return 0;
}

/* Finds the group of all samples; 0 if there are several. */
static int find_group(struct locations *l)
{
	const struct profile *p = l->w->profile;
	__cleanup(freep) __u64 *samples = profile_group_samples(p);

	if (!samples)
		return -ENOMEM;
	for (__u32 i = 1; i < p->ngroups; i++) {
		if (samples[i] && samples[i] == p->binned)
			l->group = i;
	}
	return 0;
}

int pprof_stacks(struct pprof *w)
{
	struct locations l;
	int err = locations_init(&l, w) ?: number_places(&l) ?: find_group(&l);

	if (!err) {
		if (w->lines)
			find_lines(&l);
		functions(&l);
		err = places(&l) ?: each_stack(w->profile, sample, &l);
	}
	locations_fini(&l);
	return err;
}
