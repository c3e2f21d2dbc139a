/* json_stacks.c - the stacks of a profile as JSON */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "stack_ends.h"

#include "json_name.h"
#include "json_stacks.h"

/* Adds @value, or makes @all NULL if there is no memory. */
static void append(json_t **all, json_t *value)
{
	if (json_array_append_new(*all, value)) {
		json_decref(*all);
		*all = NULL;
	}
}

/* The roots that a file has: without states only those of no state. */
static __u32 roots_of(const struct call_tree *t)
{
	__u64 without = call_tree_state_samples(t, CALL_NO_STATE);

	return call_tree_sum(t) > without ? (__u32)CALL_ROOTS : CALL_ENDS;
}

/* The samples by the way in which their stacks end and their state, with those without frames. */
static json_t *ends_of(const struct call_tree *t)
{
	json_t *all = json_array();

	for (__u32 i = 0; i < roots_of(t); i++) {
		const char *state = stack_state_key(call_root_state(i));
		json_t *end = json_pack("{ss sI sI}", "end", stack_end_key(call_root_end(i)),
					"samples", (json_int_t)call_tree_samples(t, i),
					"without_frame", (json_int_t)t->node[i].count);

		if (end && state && json_object_set_new(end, "state", json_string(state))) {
			json_decref(end);
			end = NULL;
		}
		append(&all, end);
	}
	return all;
}

static json_t *cuts_of(const struct profile *p, const struct stack_ends *e)
{
	json_t *all = json_array();

	for (size_t i = 0; i < e->ncuts; i++) {
		const struct stack_cut *cut = &e->cut[i];
		const struct object *o = &p->objects[cut->object];
		const char *cure = stack_end_cure(cut->end, o);

		append(&all, json_pack("{ss so sI sI so}", "end", stack_end_key(cut->end), "object",
				       jsonname(o->path), "object_index", (json_int_t)cut->object,
				       "samples", (json_int_t)cut->samples, "cure",
				       cure ? json_string(cure) : json_null()));
	}
	return all;
}

static json_t *frames_of(const struct profile *p)
{
	json_t *all = json_array();

	for (size_t i = 0; i < p->calls.nframes; i++) {
		const struct call_frame *f = &p->calls.frame[i];

		append(&all, json_pack("[oII]", f->name ? jsonname(f->name) : json_null(),
				       (json_int_t)f->object, (json_int_t)f->offset));
	}
	return all;
}

static json_t *nodes_of(const struct call_tree *t)
{
	json_t *all = json_array();
	__u32 roots = roots_of(t);

	for (size_t i = CALL_ROOTS; i < t->n; i++) {
		const struct call_node *n = &t->node[i];
		__u32 parent =
			n->parent < CALL_ROOTS ? n->parent : n->parent - (__u32)CALL_ROOTS + roots;

		append(&all, json_pack("[IIIII]", (json_int_t)parent, (json_int_t)n->frame,
				       (json_int_t)n->object, (json_int_t)n->offset,
				       (json_int_t)n->count));
	}
	return all;
}

/* The outermost nodes whose samples are of a group: the indices of both. */
static json_t *groups_of(const struct call_tree *t)
{
	json_t *all = json_array();

	for (size_t i = CALL_ROOTS; i < t->n; i++) {
		const struct call_node *n = &t->node[i];

		if (n->group && n->parent < CALL_ROOTS)
			append(&all, json_pack("[II]", (json_int_t)(i - CALL_ROOTS),
					       (json_int_t)n->group));
	}
	return all;
}

/*
 * Indices of nodes, as those of parents, below the number of ends: what has no stack; samples; what
 * they waited for; the frame that names the lock.
 */
static json_t *wakes_of(const struct call_tree *t)
{
	json_t *all = json_array();
	__u32 roots = roots_of(t);

	for (size_t i = 0; i < t->nwakes; i++) {
		const struct call_wake *w = &t->wake[i];
		__u32 waker =
			w->waker < CALL_ROOTS ? w->waker : w->waker - (__u32)CALL_ROOTS + roots;

		append(&all,
		       json_pack("[IIIso]",
				 (json_int_t)(w->sleeper < CALL_ROOTS
						      ? w->sleeper
						      : w->sleeper - CALL_ROOTS + roots),
				 (json_int_t)waker, (json_int_t)w->count, stack_wait_key(w->wait),
				 w->lock ? json_integer((json_int_t)w->lock - 1) : json_null()));
	}
	return all;
}

/* For each slice the nodes that had samples, as those of wakes, each followed by how many. */
static json_t *times_of(const struct profile *p)
{
	const struct call_tree *t = &p->calls;
	json_t *all = json_array();
	__u32 roots = roots_of(t);
	size_t at = 0;

	for (size_t k = 0; k < p->nslices; k++) {
		json_t *slice = json_array();

		for (; at < t->ntimes && t->time[at].slice == k; at++) {
			__u32 node = t->time[at].node;

			append(&slice,
			       json_integer((json_int_t)(node < CALL_ROOTS
								 ? node
								 : node - CALL_ROOTS + roots)));
			append(&slice, json_integer((json_int_t)t->time[at].count));
		}
		append(&all, slice);
	}
	return all;
}

json_t *json_stacks(const struct profile *p)
{
	json_t *stacks = NULL;
	struct stack_ends e;

	if (!stack_ends_init(&e, p))
		stacks = json_pack("{sI sI so so}", "samples", (json_int_t)e.sum, "without",
				   (json_int_t)e.without, "ends", ends_of(&p->calls), "cuts",
				   cuts_of(p, &e));
	stack_ends_fini(&e);
	if (stacks && (json_object_set_new(stacks, "frames", frames_of(p)) |
		       json_object_set_new(stacks, "nodes", nodes_of(&p->calls)))) {
		json_decref(stacks);
		return NULL;
	}
	if (stacks &&
	    ((call_tree_has_groups(&p->calls) &&
	      json_object_set_new(stacks, "groups", groups_of(&p->calls))) ||
	     (p->calls.nwakes && json_object_set_new(stacks, "wakes", wakes_of(&p->calls))) ||
	     (p->calls.ntimes && json_object_set_new(stacks, "times", times_of(p))))) {
		json_decref(stacks);
		return NULL;
	}
	return stacks;
}

static int load_frames(struct profile *p, const json_t *frames)
{
	const json_t *frame;
	size_t i;

	json_array_foreach(frames, i, frame) {
		struct call_frame f = { 0 };
		json_int_t object, offset;
		json_t *name;
		__u32 index;

		if (json_unpack((json_t *)frame, "[oII!]", &name, &object, &offset) < 0 ||
		    object < 0 || (size_t)object >= p->nobjects ||
		    !(json_is_null(name) || json_is_string(name)))
			return -EINVAL;
		f.object = (__u32)object;
		f.offset = (__u64)offset;
		f.name = json_is_string(name) ? strdup(json_string_value(name)) : NULL;
		if (json_is_string(name) && !f.name)
			return -ENOMEM;
		if (call_tree_add_frame(&p->calls, &f, &index) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The ways in which stacks end, in the file's numbering, which can be another version's. */
#define ENDS_MAX 64

struct json_ends {
	__u32 root[ENDS_MAX];
	__u64 without[ENDS_MAX]; /* samples without a frame */
	size_t n;
};

/* An end that only another version knows is that of a stack which could not be read further. */
static enum call_root end_of(const char *key)
{
	size_t i = 0;

	while (i < CALL_ENDS && strcmp(key, stack_end_key((enum call_root)i)) != 0)
		i++;
	return i < CALL_ENDS ? (enum call_root)i : CALL_UNREADABLE;
}

static int load_ends(struct json_ends *e, const json_t *ends)
{
	json_t *end;
	size_t i;

	e->n = json_array_size(ends);
	if (e->n > ENDS_MAX)
		return -EINVAL;
	json_array_foreach(ends, i, end) {
		json_int_t without;
		const char *key, *state_key = NULL;
		enum call_state state;

		if (json_unpack(end, "{ss sI s?s}", "end", &key, "without_frame", &without, "state",
				&state_key) < 0 ||
		    without < 0)
			return -EINVAL;
		state = state_key ? stack_state_of(state_key) : CALL_NO_STATE;
		e->root[i] = call_root(end_of(key), state < CALL_STATES ? state : CALL_NO_STATE);
		e->without[i] = (__u64)without;
	}
	return 0;
}

/* Takes the groups of the @n nodes, in an array that the caller frees. */
static int load_groups(__u32 **out, const struct profile *p, const json_t *groups, size_t n)
{
	__u32 *group = *out = calloc(n + 1, sizeof(*group));
	const json_t *pair;
	size_t i;

	if (!group)
		return -ENOMEM;
	json_array_foreach(groups, i, pair) {
		json_int_t node, of;

		if (json_unpack((json_t *)pair, "[II!]", &node, &of) < 0 || node < 0 ||
		    (size_t)node >= n || of < 0 || (size_t)of >= p->ngroups)
			return -EINVAL;
		group[node] = (__u32)of;
	}
	return 0;
}

/* Parents precede their children and no node is duplicated. The first parents are ends. */
static int load_nodes(struct profile *p, const struct json_ends *e, const json_t *stacks,
		      __u64 *left)
{
	const json_t *nodes = json_object_get(stacks, "nodes"), *node;
	__cleanup(freep) __u32 *group = NULL;
	struct call_tree *t = &p->calls;
	size_t i;
	int err = load_groups(&group, p, json_object_get(stacks, "groups"), json_array_size(nodes));

	if (err < 0)
		return err;
	json_array_foreach(nodes, i, node) {
		json_int_t parent, frame, object, offset, count;
		struct call_node like = { .group = group[i] };
		__u32 index;

		if (json_unpack((json_t *)node, "[IIIII!]", &parent, &frame, &object, &offset,
				&count) < 0 ||
		    parent < 0 || (size_t)parent >= i + e->n || frame < 0 ||
		    (size_t)frame >= t->nframes || object < 0 || (size_t)object >= p->nobjects ||
		    count < 0 || (__u64)count > *left)
			return -EINVAL;
		index = (size_t)parent < e->n ? e->root[parent]
					      : (__u32)((size_t)parent - e->n + CALL_ROOTS);
		like.object = (__u32)object;
		like.offset = (__u64)offset;
		if (call_tree_add_like(t, index, &like, &index) < 0)
			return -ENOMEM;
		if (index != i + CALL_ROOTS)
			return -EINVAL;
		t->node[index].frame = (__u32)frame;
		t->node[index].count = (__u64)count;
		*left -= (__u64)count;
	}
	return 0;
}

/* Sets the node of index @at in the file; false: there is none. */
static bool load_index(__u32 *node, const struct call_tree *t, const struct json_ends *e,
		       json_int_t at)
{
	if (at < 0 || (size_t)at >= t->n - CALL_ROOTS + e->n)
		return false;
	*node = (size_t)at < e->n ? e->root[at] : (__u32)((size_t)at - e->n + CALL_ROOTS);
	return true;
}

/* Sets the frame that names a lock, 1 + its number; false: there is no such frame. */
static bool load_lock(__u32 *frame, const struct call_tree *t, const json_t *lock)
{
	json_int_t i = json_is_integer(lock) ? json_integer_value(lock) : -1;

	*frame = (__u32)(i + 1);
	return i < (json_int_t)t->nframes && (i >= 0 || !lock || json_is_null(lock));
}

static int load_wakes(struct profile *p, const struct json_ends *e, const json_t *wakes)
{
	const json_t *wake;
	size_t i;

	json_array_foreach(wakes, i, wake) {
		json_int_t sleeper, waker, count;
		const char *wait = "";
		struct call_wake w = { 0 };
		json_t *lock = NULL;

		/* Files of earlier versions have no waits. */
		if ((json_unpack((json_t *)wake, "[IIIso!]", &sleeper, &waker, &count, &wait,
				 &lock) < 0 &&
		     json_unpack((json_t *)wake, "[III!]", &sleeper, &waker, &count) < 0) ||
		    !load_lock(&w.lock, &p->calls, lock) || p->calls.n < CALL_ROOTS ||
		    !load_index(&w.sleeper, &p->calls, e, sleeper) ||
		    !load_index(&w.waker, &p->calls, e, waker) || count < 0)
			return -EINVAL;
		w.count = (__u64)count;
		w.wait = stack_wait_of(wait);
		if (w.waker < CALL_ROOTS)
			w.waker = waker < CALL_WAKERS ? (__u32)waker : 0;
		if (call_tree_add_wake(&p->calls, &w))
			return -ENOMEM;
	}
	return 0;
}

/* Takes the times of slice @k from the file; @left has what its nodes have in no slice yet. */
static int load_slice(struct call_tree *t, const struct json_ends *e, const json_t *slice, __u32 k,
		      __u64 *left)
{
	for (size_t i = 0; i + 1 < json_array_size(slice); i += 2) {
		json_int_t count = json_integer_value(json_array_get(slice, i + 1));
		struct call_time time = { .slice = k };

		if (!load_index(&time.node, t, e, json_integer_value(json_array_get(slice, i))) ||
		    count < 1 || (__u64)count > left[time.node])
			return -EINVAL;
		time.count = (__u64)count;
		left[time.node] -= time.count;
		if (call_tree_add_time(t, &time))
			return -ENOMEM;
	}
	return json_is_array(slice) && json_array_size(slice) % 2 == 0 ? 0 : -EINVAL;
}

/* Functions, which are read before, have as many slices, or none. */
static int load_times(struct profile *p, const struct json_ends *e, const json_t *times)
{
	struct call_tree *t = &p->calls;
	__cleanup(freep) __u64 *left = calloc(t->n + 1, sizeof(*left));
	const json_t *slice;
	int err = 0;
	size_t i;

	if (!left)
		return -ENOMEM;
	if (times && (!p->slice_ns || t->n < CALL_ROOTS ||
		      (p->nslices && p->nslices != json_array_size(times))))
		return -EINVAL;
	for (i = 0; i < t->n; i++)
		left[i] = t->node[i].count;
	json_array_foreach(times, i, slice) {
		err = err ?: load_slice(t, e, slice, (__u32)i, left);
		p->nslices = json_array_size(times);
	}
	return err;
}

/* A tree without a node has only the time of threads whose state is known, and no stack. */
static int count_ends(struct profile *p, const struct json_ends *e, __u64 left)
{
	for (size_t i = 0; i < e->n; i++) {
		if (!p->calls.n && !(e->without[i] && call_root_state(e->root[i])))
			continue;
		if (e->without[i] > left)
			return -EINVAL;
		left -= e->without[i];
		if (call_tree_count(&p->calls, e->root[i], e->without[i]))
			return -ENOMEM;
	}
	return 0;
}

int json_load_stacks(struct profile *p, const json_t *stacks)
{
	__u64 left = p->total - p->lost;
	struct json_ends e = { 0 };
	int err;

	if (!stacks)
		return 0;
	err = load_frames(p, json_object_get(stacks, "frames"))
		      ?: load_ends(&e, json_object_get(stacks, "ends"))
		      ?: load_nodes(p, &e, stacks, &left);
	return err ?: count_ends(p, &e, left)
			     ?: load_wakes(p, &e, json_object_get(stacks, "wakes"))
			     ?: load_times(p, &e, json_object_get(stacks, "times"));
}
