/* time_slices.c - stacks by slices of time, in bounded memory */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "sample_location.h"
#include "time_slices.h"

/* 16 MiB. A table has at most 262144 nodes, so that two slices fit in any case. */
#define TIMES_MAX (1u << 20)

void slices_fini(struct slices *s)
{
	call_tree_fini(&s->part);
	free(s->seen);
}

__u64 slices_next_ns(const struct slices *s)
{
	return (s->n + 1) * s->slice_ns;
}

static int by_slice(const void *a, const void *b)
{
	const struct call_time *x = a, *y = b;

	if (x->slice != y->slice)
		return x->slice < y->slice ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* Sorts the times of @t, and sums up those of the same node and slice. */
static void sum_up(struct call_tree *t)
{
	size_t n = 0;

	if (t->ntimes)
		qsort(t->time, t->ntimes, sizeof(*t->time), by_slice);
	for (size_t i = 0; i < t->ntimes; i++) {
		if (n && !by_slice(&t->time[n - 1], &t->time[i]))
			t->time[n - 1].count += t->time[i].count;
		else
			t->time[n++] = t->time[i];
	}
	t->ntimes = n;
}

/* Merges pairs of slices. */
static void merge(struct slices *s)
{
	for (size_t i = 0; i < s->part.ntimes; i++)
		s->part.time[i].slice /= 2;
	sum_up(&s->part);
	s->n /= 2;
	s->slice_ns *= 2;
}

int slices_take(struct slices *s, const struct call_tree *now)
{
	__u64 *seen = s->seen;
	int err = 0;

	if (now->n > s->nseen) {
		seen = reallocarray(s->seen, now->n, 2 * sizeof(*seen));
		if (!seen)
			return -ENOMEM;
		s->seen = seen;
		for (; s->nseen < 2 * now->n; s->nseen++)
			seen[s->nseen] = 0;
	}
	for (__u32 i = 0; i < now->n && !err; i++) {
		const struct call_time time = { now->node[i].count - seen[i], i, (__u32)s->n };

		if (now->node[i].count <= seen[i])
			continue;
		seen[i] = now->node[i].count;
		err = call_tree_add_time(&s->part, &time);
	}
	s->n++;
	if (s->n % 2 == 0 && (s->n >= s->max || s->part.ntimes > TIMES_MAX))
		merge(s);
	return err;
}

/* Finds or adds the nodes of @last in @t: node i is to[i]. */
static int find_nodes(__u32 *to, const struct call_tree *last, struct call_tree *t)
{
	int err = call_tree_init(t);

	for (__u32 i = 0; i < last->n && !err; i++) {
		const struct call_node *n = &last->node[i];

		to[i] = i;
		if (i >= CALL_ROOTS)
			err = call_tree_add_like(t, to[n->parent], n, &to[i]);
	}
	return err;
}

/* Gives node @at of @t its @left samples: a root's to all of the @n slices, others' to the last. */
static int add_rest(struct call_tree *t, __u32 at, __u64 left, size_t n)
{
	size_t first = at < CALL_ROOTS ? 0 : n - 1;
	int err = 0;

	for (size_t k = first; k < n && left && !err; k++) {
		__u64 part = (left + (n - k) - 1) / (n - k);

		left -= part;
		err = call_tree_add_time(t, &(struct call_time){ part, at, (__u32)k });
	}
	return err;
}

int slices_into(const struct slices *s, const struct call_tree *last, struct profile *p)
{
	struct call_tree *t = &p->calls;
	__cleanup(freep) __u32 *to = calloc(last->n + 1, sizeof(*to));
	int err = to ? find_nodes(to, last, t) : -ENOMEM;
	__cleanup(freep) __u64 *left = calloc(t->n + 1, sizeof(*left));

	if (err || !left)
		return -ENOMEM;
	p->slice_ns = s->slice_ns;
	p->nslices = s->n + 1;
	for (size_t i = 0; i < t->n; i++)
		left[i] = t->node[i].count;
	for (size_t i = 0; i < s->part.ntimes && !err; i++) {
		struct call_time time = s->part.time[i];

		time.node = to[time.node];
		if (time.count > left[time.node])
			time.count = left[time.node];
		left[time.node] -= time.count;
		if (time.count)
			err = call_tree_add_time(t, &time);
	}
	for (__u32 i = 0; i < t->n && !err; i++)
		err = add_rest(t, i, left[i], p->nslices);
	sum_up(t);
	return err;
}

/* Takes the slices from all functions. */
static void forget(struct profile *p)
{
	for (size_t i = 0; i < p->nfunctions; i++) {
		free(p->functions[i].slices);
		p->functions[i].slices = NULL;
	}
}

int slices_of_functions(struct profile *p)
{
	__cleanup(freep) struct function **sorted = profile_sorted_functions(p);
	const struct call_tree *t = &p->calls;

	forget(p);
	if (!sorted)
		return -ENOMEM;
	if (!t->ntimes)
		p->nslices = 0;
	for (size_t i = 0; i < p->nfunctions && t->ntimes; i++) {
		p->functions[i].slices = calloc(p->nslices, sizeof(__u64));
		if (!p->functions[i].slices)
			return -ENOMEM;
	}
	for (size_t i = 0; i < t->ntimes; i++) {
		const struct call_time *time = &t->time[i];
		struct function *f = NULL;

		if (time->node >= CALL_ROOTS)
			f = function_of_node(p, sorted, time->node);
		if (f)
			f->slices[time->slice] += time->count;
	}
	return 0;
}
