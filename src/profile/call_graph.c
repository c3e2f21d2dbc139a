/* call_graph.c - trees of callers or callees, by function */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/grow.h"

#include "call_graph.h"
#include "each_stack.h"

static int add(struct call_graph *g, __u32 parent, __u32 frame, __u32 *index)
{
	void *grown = grow(g->node, g->n, sizeof(*g->node));

	if (!grown)
		return -ENOMEM;
	g->node = grown;
	*index = (__u32)g->n;
	g->node[g->n++] = (struct call_graph_node){
		.frame = frame, .parent = parent, .child = CALL_GRAPH_NONE, .next = CALL_GRAPH_NONE
	};
	return 0;
}

/*
 * Finds or adds the node of @frame below @parent and moves it to the front of the list, because the
 * next call often asks for the same one.
 */
static int child(struct call_graph *g, __u32 parent, __u32 frame, __u32 *index)
{
	__u32 *place = &g->node[parent].child;
	int err;

	while (*place != CALL_GRAPH_NONE && g->node[*place].frame != frame)
		place = &g->node[*place].next;
	if (*place != CALL_GRAPH_NONE) {
		*index = *place;
		*place = g->node[*index].next;
	} else {
		err = add(g, parent, frame, index);
		if (err)
			return err;
	}
	g->node[*index].next = g->node[parent].child;
	g->node[parent].child = *index;
	return 0;
}

/* Parents come before their children. */
static void sum_up(struct call_graph *g)
{
	for (size_t i = g->n; i-- > 0;) {
		struct call_graph_node *n = &g->node[i];

		n->total += n->self;
		if (n->parent != CALL_GRAPH_NONE)
			g->node[n->parent].total += n->total;
	}
}

/* Merge sort of the list at @first; returns its new first node. */
static __u32 sort_list(struct call_graph_node *node, __u32 first)
{
	__u32 half = first, end = first, head = CALL_GRAPH_NONE, *tail = &head, second;

	if (first == CALL_GRAPH_NONE || node[first].next == CALL_GRAPH_NONE)
		return first;
	while (node[end].next != CALL_GRAPH_NONE && node[node[end].next].next != CALL_GRAPH_NONE) {
		half = node[half].next;
		end = node[node[end].next].next;
	}
	second = node[half].next;
	node[half].next = CALL_GRAPH_NONE;
	first = sort_list(node, first);
	second = sort_list(node, second);
	while (first != CALL_GRAPH_NONE && second != CALL_GRAPH_NONE) {
		const struct call_graph_node *a = &node[first], *b = &node[second];
		bool take = a->total > b->total || (a->total == b->total && a->frame < b->frame);
		__u32 *from = take ? &first : &second;

		*tail = *from;
		tail = &node[*from].next;
		*from = *tail;
	}
	*tail = first != CALL_GRAPH_NONE ? first : second;
	return head;
}

static void finish(struct call_graph *g)
{
	sum_up(g);
	for (size_t i = 0; i < g->n; i++)
		g->node[i].child = sort_list(g->node, g->node[i].child);
}

static int begin(struct call_graph *g)
{
	__u32 root;

	*g = (struct call_graph){ 0 };
	return add(g, CALL_GRAPH_NONE, CALL_GRAPH_NONE, &root);
}

/*
 * Adds each node of @t below its caller's; a function that calls itself is one node, as deep as it
 * recurs. With @wanted, nodes outside of wanted functions are
 * omitted, and outermost wanted ones are children of the root.
 */
static int build(struct call_graph *g, const struct call_tree *t, const bool *wanted)
{
	__cleanup(freep) __u32 *to = calloc(t->n + 1, sizeof(*to));
	bool cuts[CALL_ROOTS] = { false };
	int err = to ? begin(g) : -ENOMEM;

	for (size_t i = CALL_ROOTS; i < t->n; i++) {
		if (t->node[i].parent < CALL_ROOTS && t->node[i].parent != CALL_WHOLE)
			cuts[t->node[i].parent] = true;
	}
	for (__u32 i = CALL_ENDS; i < CALL_ROOTS && i < t->n; i++)
		cuts[i] |= t->node[i].count != 0;
	for (size_t i = 0; !err && i < t->n; i++) {
		const struct call_node *n = &t->node[i];
		__u32 parent = i < CALL_ROOTS ? CALL_GRAPH_NONE : to[n->parent];

		if (i < CALL_ROOTS) {
			to[i] = wanted ? CALL_GRAPH_NONE : 0;
			if (!wanted && cuts[i])
				err = child(g, 0, (__u32)(t->nframes + i), &to[i]);
			if (!err && cuts[i] && !wanted)
				g->node[to[i]].self += n->count;
			continue;
		}
		if (parent == CALL_GRAPH_NONE && wanted[n->frame])
			parent = 0;
		to[i] = parent;
		if (parent == CALL_GRAPH_NONE)
			continue;
		if (g->node[parent].frame != n->frame)
			err = child(g, parent, n->frame, &to[i]);
		if (!err)
			g->node[to[i]].self += n->count;
	}
	if (err)
		call_graph_fini(g);
	else
		finish(g);
	return err;
}

int call_graph_init(struct call_graph *g, const struct call_tree *t)
{
	return build(g, t, NULL);
}

int call_graph_callees(struct call_graph *g, const struct call_tree *t, const bool *wanted)
{
	return build(g, t, wanted);
}

/* The samples of each node and its children; the caller frees them. */
static __u64 *totals(const struct call_tree *t)
{
	__u64 *total = calloc(t->n + 1, sizeof(*total));

	for (size_t i = t->n; total && i-- > CALL_ROOTS;) {
		total[i] += t->node[i].count;
		total[t->node[i].parent] += total[i];
	}
	return total;
}

/* Adds the callers of node @at, for its @n samples. */
static int add_callers(struct call_graph *g, const struct call_tree *t, __u32 at, __u64 n)
{
	__u32 to = 0;
	int err = 0;

	for (; !err && at >= CALL_ROOTS; at = t->node[at].parent)
		err = child(g, to, t->node[at].frame, &to);
	if (!err && at != CALL_WHOLE)
		err = child(g, to, (__u32)t->nframes + at, &to);
	if (!err)
		g->node[to].self += n;
	return err;
}

int call_graph_callers(struct call_graph *g, const struct call_tree *t, const bool *wanted)
{
	__cleanup(freep) bool *below = calloc(t->n + 1, sizeof(*below));
	__cleanup(freep) __u64 *total = totals(t);
	int err = below && total ? begin(g) : -ENOMEM;

	for (size_t i = CALL_ROOTS; !err && i < t->n; i++) {
		const struct call_node *n = &t->node[i];

		below[i] = below[n->parent] || wanted[n->frame];
		if (wanted[n->frame] && !below[n->parent] && total[i])
			err = add_callers(g, t, (__u32)i, total[i]);
	}
	if (err)
		call_graph_fini(g);
	else
		finish(g);
	return err;
}

static int by_total(const void *a, const void *b)
{
	const struct call_graph_node *x = *(const struct call_graph_node *const *)a,
				     *y = *(const struct call_graph_node *const *)b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* A caller has no fewer samples than what it calls, and comes first in the graph. */
int call_graph_largest(bool **out, const struct call_graph *g, size_t n)
{
	__cleanup(freep) const struct call_graph_node **node = calloc(g->n, sizeof(const void *));
	__cleanup(freep) bool *largest = calloc(g->n, sizeof(*largest));

	if (!node || !largest)
		return -ENOMEM;
	for (size_t i = 0; i < g->n; i++)
		node[i] = &g->node[i];
	qsort(node, g->n, sizeof(const void *), by_total);
	for (size_t i = 0; i < g->n && i <= n; i++) /* and the root */
		largest[node[i] - g->node] = true;
	*out = steal(largest);
	return 0;
}

__u32 call_graph_next(const struct call_graph *g, __u32 at, bool below, size_t *depth)
{
	if (below && g->node[at].child != CALL_GRAPH_NONE) {
		++*depth;
		return g->node[at].child;
	}
	while (at && g->node[at].next == CALL_GRAPH_NONE) {
		at = g->node[at].parent;
		--*depth;
	}
	return at ? g->node[at].next : CALL_GRAPH_NONE;
}

/* Adds the stack of the waker of @w, from its innermost frame outwards. */
static int add_waker(struct call_graph *g, const struct call_tree *t, const struct call_wake *w)
{
	__u32 to = 0, at = w->waker;
	int err = 0;

	if (at < CALL_ROOTS)
		err = child(g, 0, stack_frame_waker(t, at), &to);
	for (; !err && at >= CALL_ROOTS; at = t->node[at].parent)
		err = child(g, to, t->node[at].frame, &to);
	if (!err)
		g->node[to].self += w->count;
	return err;
}

int call_graph_wakers(struct call_graph *g, const struct call_tree *t, const bool *wanted)
{
	__cleanup(freep) bool *below = calloc(t->n + 1, sizeof(*below));
	struct call_wake rest = { 0 };
	int err = below ? begin(g) : -ENOMEM;

	for (__u32 i = CALL_ROOTS; !err && i < t->n; i++) {
		const struct call_node *n = &t->node[i];

		below[i] = below[n->parent] || wanted[n->frame];
		if (below[i] && call_root_state(call_tree_root(t, i)) == CALL_ASLEEP)
			rest.count += n->count;
	}
	for (size_t i = 0; !err && i < t->nwakes; i++) {
		const struct call_wake *w = &t->wake[i];

		if (!below[w->sleeper] || !w->waker)
			continue;
		rest.count -= w->count < rest.count ? w->count : rest.count;
		err = add_waker(g, t, w);
	}
	if (!err && rest.count)
		err = add_waker(g, t, &rest);
	if (err)
		call_graph_fini(g);
	else
		finish(g);
	return err;
}

void call_graph_fini(struct call_graph *g)
{
	free(g->node);
	*g = (struct call_graph){ 0 };
}

/* Says whether the function of node @at is among its own callers. */
static bool recurs(const struct call_tree *t, __u32 at)
{
	__u32 frame = t->node[at].frame;

	while ((at = t->node[at].parent) >= CALL_ROOTS) {
		if (t->node[at].frame == frame)
			return true;
	}
	return false;
}

struct call_graph_sum *call_graph_sums(const struct call_tree *t)
{
	struct call_graph_sum *sum = calloc(t->nframes + 1, sizeof(*sum));
	__cleanup(freep) __u64 *total = totals(t);

	if (!sum || !total) {
		free(sum);
		return NULL;
	}
	for (size_t i = CALL_ROOTS; i < t->n; i++) {
		const struct call_node *n = &t->node[i];

		sum[n->frame].self += n->count;
		if (!recurs(t, (__u32)i))
			sum[n->frame].total += total[i];
	}
	return sum;
}
