/* call_tree.c - the stacks of a profile: a tree of calling contexts */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "base/grow.h"

#include "call_tree.h"

void call_tree_fini(struct call_tree *t)
{
	for (size_t i = 0; i < t->nframes; i++)
		free(t->frame[i].name);
	free(t->frame);
	free(t->node);
	index_slots_fini(&t->slots);
	free(t->wake);
	free(t->time);
	*t = (struct call_tree){ 0 };
}

static __u64 hash(const struct call_node *n)
{
	__u64 h = (n->offset ^ (__u64)n->object << 40) * 0x9e3779b97f4a7c15u;

	return (h ^ h >> 29 ^ n->parent ^ (__u64)n->group << 32) * 0x9e3779b97f4a7c15u;
}

/* The slot of the node like @like, or the free one for it. */
static __u32 *slot_of(const struct call_tree *t, const struct call_node *like)
{
	const struct index_slots *s = &t->slots;
	size_t at = index_slots_first(s, hash(like));

	while (s->slot[at]) {
		const struct call_node *n = &t->node[s->slot[at] - 1];

		if (n->parent == like->parent && n->object == like->object &&
		    n->offset == like->offset && n->group == like->group)
			break;
		at = index_slots_next(s, at);
	}
	return &s->slot[at];
}

static int make_room(struct call_tree *t)
{
	int anew = index_slots_reserve(&t->slots, t->n);

	for (size_t i = CALL_ROOTS; anew > 0 && i < t->n; i++)
		*slot_of(t, &t->node[i]) = (__u32)i + 1;
	return anew < 0 ? anew : 0;
}

static int append(struct call_tree *t, const struct call_node *node)
{
	void *grown = grow(t->node, t->n, sizeof(*node));

	if (!grown)
		return -ENOMEM;
	t->node = grown;
	t->node[t->n++] = *node;
	return 0;
}

int call_tree_init(struct call_tree *t)
{
	const struct call_node root = { 0 };
	int err = 0;

	while (!err && t->n < CALL_ROOTS)
		err = append(t, &root);
	return err;
}

int call_tree_add_like(struct call_tree *t, __u32 parent, const struct call_node *like,
		       __u32 *index)
{
	struct call_node node = { .parent = parent,
				  .object = like->object,
				  .offset = like->offset,
				  .group = like->group };
	int err = call_tree_init(t) ?: make_room(t);
	__u32 *slot;

	if (err)
		return err;
	if (parent >= CALL_ROOTS)
		node.group = t->node[parent].group;
	slot = slot_of(t, &node);
	if (!*slot) {
		err = append(t, &node);
		if (err)
			return err;
		*slot = (__u32)t->n;
	}
	*index = *slot - 1;
	return 0;
}

int call_tree_add(struct call_tree *t, __u32 parent, __u32 object, __u64 offset, __u32 *index)
{
	const struct call_node like = { .object = object, .offset = offset };

	return call_tree_add_like(t, parent, &like, index);
}

bool call_tree_has_groups(const struct call_tree *t)
{
	size_t i = CALL_ROOTS;

	while (i < t->n && !t->node[i].group)
		i++;
	return i < t->n;
}

int call_tree_count(struct call_tree *t, __u32 index, __u64 n)
{
	int err = call_tree_init(t);

	if (!err)
		t->node[index].count += n;
	return err;
}

int call_tree_add_wake(struct call_tree *t, const struct call_wake *wake)
{
	void *grown = grow(t->wake, t->nwakes, sizeof(*wake));

	if (!grown)
		return -ENOMEM;
	t->wake = grown;
	t->wake[t->nwakes++] = *wake;
	return 0;
}

int call_tree_add_wakes(struct call_tree *t, const struct call_tree *from, const __u32 *to,
			const __u32 *frame)
{
	int err = 0;

	for (size_t i = 0; i < from->nwakes && !err; i++) {
		struct call_wake w = from->wake[i];

		if (!from->node[w.sleeper].count)
			continue;
		w.sleeper = to[w.sleeper];
		w.waker = w.waker < CALL_ROOTS ? w.waker : to[w.waker];
		w.lock = w.lock && frame ? frame[w.lock - 1] : w.lock;
		err = call_tree_add_wake(t, &w);
	}
	return err;
}

int call_tree_add_time(struct call_tree *t, const struct call_time *time)
{
	void *grown = grow(t->time, t->ntimes, sizeof(*time));

	if (!grown)
		return -ENOMEM;
	t->time = grown;
	t->time[t->ntimes++] = *time;
	return 0;
}

int call_tree_add_times(struct call_tree *t, const struct call_tree *from, const __u32 *to)
{
	int err = 0;

	for (size_t i = 0; i < from->ntimes && !err; i++) {
		struct call_time time = from->time[i];

		if (!from->node[time.node].count)
			continue;
		time.node = to[time.node];
		err = call_tree_add_time(t, &time);
	}
	return err;
}

int call_tree_add_all(struct call_tree *t, const struct call_tree *from)
{
	__u32 *to = calloc(from->n + 1, sizeof(*to));
	int err = to ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < from->n; i++) {
		const struct call_node *n = &from->node[i];

		to[i] = (__u32)i;
		if (i < CALL_ROOTS)
			err = call_tree_init(t);
		else
			err = call_tree_add_like(t, to[n->parent], n, &to[i]);
		if (!err)
			t->node[to[i]].count += n->count;
	}
	if (!err)
		err = call_tree_add_wakes(t, from, to, NULL);
	free(to);
	return err;
}

int call_tree_add_frame(struct call_tree *t, const struct call_frame *frame, __u32 *index)
{
	void *grown = grow(t->frame, t->nframes, sizeof(*frame));

	if (!grown) {
		free(frame->name);
		return -ENOMEM;
	}
	t->frame = grown;
	t->frame[t->nframes] = *frame;
	*index = (__u32)t->nframes++;
	return 0;
}

bool call_tree_is_inlined(const struct call_tree *t, __u32 index)
{
	const struct call_node *n = &t->node[index], *parent = &t->node[n->parent];

	/* No function has offset 0, where a file has its headers. */
	return n->parent >= CALL_ROOTS && n->object == parent->object &&
	       n->offset == parent->offset && n->frame < t->nframes && !t->frame[n->frame].offset &&
	       t->frame[n->frame].name;
}

/*
 * Adds to @t the nodes of @from that have samples in themselves or below, with counts @samples, and
 * those that woke them up. Sets to[i] to the index of node i of @from.
 */
static int add_counted(struct call_tree *t, const struct call_tree *from, const __u64 *samples,
		       __u32 *to)
{
	__cleanup(freep) bool *wanted = calloc(from->n + 1, sizeof(*wanted));
	int err = wanted ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < from->nwakes; i++)
		wanted[from->wake[i].waker] |= samples[from->wake[i].sleeper] != 0;
	for (size_t i = from->n; !err && i-- > CALL_ROOTS;) {
		wanted[i] |= samples[i] != 0;
		wanted[from->node[i].parent] |= wanted[i];
	}
	for (size_t i = 0; !err && i < from->n; i++) {
		const struct call_node *n = &from->node[i];

		to[i] = (__u32)i;
		if (i < CALL_ROOTS)
			err = call_tree_init(t);
		else if (wanted[i])
			err = call_tree_add_like(t, to[n->parent], n, &to[i]);
		else
			continue;
		if (!err) {
			t->node[to[i]].frame = n->frame;
			t->node[to[i]].count += samples[i];
		}
	}
	return err;
}

static __u64 *counts(const struct call_tree *t)
{
	__u64 *count = calloc(t->n + 1, sizeof(*count));

	for (size_t i = 0; count && i < t->n; i++)
		count[i] = t->node[i].count;
	return count;
}

int call_tree_prune(struct call_tree *t)
{
	__cleanup(freep) __u64 *count = counts(t);
	__cleanup(freep) __u32 *to = calloc(t->n + 1, sizeof(*to));
	struct call_tree pruned = { 0 };
	int err = count && to ? add_counted(&pruned, t, count, to) : -ENOMEM;

	if (!err)
		err = call_tree_add_wakes(&pruned, t, to, NULL)
			      ?: call_tree_add_times(&pruned, t, to);
	if (err) {
		call_tree_fini(&pruned);
		return err;
	}
	pruned.frame = t->frame;
	pruned.nframes = t->nframes;
	t->frame = NULL;
	t->nframes = 0;
	call_tree_fini(t);
	*t = pruned;
	return 0;
}

/* Where the samples of node @at count without it. */
static __u32 folded(const struct call_tree *t, __u32 at)
{
	__u32 parent = t->node[at].parent;

	return parent < CALL_ROOTS ? call_root(CALL_NOWHERE, call_root_state(parent)) : parent;
}

/* Likewise without any node in the objects that fold. */
static __u32 folded_all(const struct call_tree *t, __u32 at, const bool *folds)
{
	while (at >= CALL_ROOTS && folds[t->node[at].object])
		at = folded(t, at);
	return at;
}

int call_tree_fold(struct call_tree *t, const bool *folds)
{
	for (__u32 i = (__u32)t->n; i-- > CALL_ROOTS;) {
		struct call_node *n = &t->node[i];

		if (!folds[n->object])
			continue;
		t->node[folded(t, i)].count += n->count;
		n->count = 0;
	}
	for (size_t i = 0; i < t->nwakes; i++)
		t->wake[i].sleeper = folded_all(t, t->wake[i].sleeper, folds);
	for (size_t i = 0; i < t->ntimes; i++)
		t->time[i].node = folded_all(t, t->time[i].node, folds);
	return call_tree_prune(t);
}

int call_tree_fold_light(struct call_tree *t, __u64 least)
{
	__cleanup(freep) bool *has_more = calloc(t->n + 1, sizeof(*has_more)); /* below */

	if (!has_more)
		return -ENOMEM;
	for (size_t i = t->n; i-- > CALL_ROOTS;) {
		struct call_node *n = &t->node[i];

		if (!has_more[i] && n->count < least && n->parent >= CALL_ROOTS) {
			t->node[n->parent].count += n->count;
			n->count = 0;
		}
		has_more[n->parent] |= has_more[i] || n->count;
	}
	return call_tree_prune(t);
}

/*
 * Subtracts the counts of @last from those of @now in @more. A node of @last that is not in @now
 * was folded: its samples are now in the nearest of its callers that is.
 */
static int subtract(__s64 *more, const struct call_tree *last, const struct call_tree *now)
{
	__cleanup(freep) __u32 *at = calloc(last->n + 1, sizeof(*at)); /* or its caller, in @now */
	__cleanup(freep) bool *gone = calloc(last->n + 1, sizeof(*gone));

	if (!at || !gone)
		return -ENOMEM;
	for (size_t i = 0; i < last->n; i++) {
		const struct call_node *n = &last->node[i];
		__u32 slot = 0;

		at[i] = i < CALL_ROOTS ? (__u32)i : at[n->parent];
		if (i >= CALL_ROOTS && !gone[n->parent] && now->slots.room) {
			struct call_node like = *n;

			like.parent = at[i];
			slot = *slot_of(now, &like);
		}
		gone[i] = i >= CALL_ROOTS && !slot;
		if (slot)
			at[i] = slot - 1;
		if (at[i] < now->n)
			more[at[i]] -= (__s64)n->count;
	}
	return 0;
}

/*
 * A node that has lost samples was folded, and has had others since: what it lacks is in a caller.
 * Below a root there is none, and they are in no node any more.
 */
static void settle(__s64 *more, const struct call_tree *now)
{
	for (size_t i = now->n; i-- > 0;) {
		if (more[i] >= 0)
			continue;
		if (i >= CALL_ROOTS)
			more[now->node[i].parent] += more[i];
		more[i] = 0;
	}
}

/* What exceeds the *@most samples that are left, of @n, which are taken from these. */
static __u64 excess(__u64 *most, __u64 n)
{
	__u64 over = n > *most ? n - *most : 0;

	*most -= n - over;
	return over;
}

void call_tree_limit(struct call_tree *t, __u64 most)
{
	for (size_t i = 0; i < t->n; i++)
		t->node[i].count -= excess(&most, t->node[i].count);
}

/* Leaves at most @most samples in @more, and takes the others from @now. */
static void limit(__s64 *more, struct call_tree *now, __u64 most)
{
	for (size_t i = 0; i < now->n; i++) {
		__u64 over = excess(&most, (__u64)more[i]);

		more[i] -= (__s64)over;
		now->node[i].count -= over;
	}
}

int call_tree_difference(struct call_tree *t, const struct call_tree *last, struct call_tree *now,
			 __u64 most)
{
	__cleanup(freep) __u64 *count = counts(now);
	__cleanup(freep) __u32 *to = calloc(now->n + 1, sizeof(*to));
	__s64 *more = (__s64 *)count;
	int err = count && to ? subtract(more, last, now) : -ENOMEM;

	if (err)
		return err;
	settle(more, now);
	limit(more, now, most);
	return add_counted(t, now, count, to);
}

bool call_tree_has_wakers(const struct call_tree *t)
{
	size_t i = 0;

	while (i < t->nwakes && !t->wake[i].waker)
		i++;
	return i < t->nwakes;
}

bool call_tree_has_waits(const struct call_tree *t)
{
	size_t i = 0;

	while (i < t->nwakes && !t->wake[i].wait)
		i++;
	return i < t->nwakes;
}

__u32 call_tree_root(const struct call_tree *t, __u32 index)
{
	while (index >= CALL_ROOTS)
		index = t->node[index].parent;
	return index;
}

__u64 call_tree_state_samples(const struct call_tree *t, enum call_state state)
{
	__u64 sum = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (t->node[i].count && call_root_state(call_tree_root(t, (__u32)i)) == state)
			sum += t->node[i].count;
	}
	return sum;
}

__u64 call_tree_samples(const struct call_tree *t, __u32 root)
{
	__u64 sum = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (t->node[i].count && call_tree_root(t, (__u32)i) == root)
			sum += t->node[i].count;
	}
	return sum;
}

__u64 call_tree_sum(const struct call_tree *t)
{
	__u64 sum = 0;

	for (size_t i = 0; i < t->n; i++)
		sum += t->node[i].count;
	return sum;
}
