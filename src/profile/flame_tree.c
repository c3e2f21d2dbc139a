/* flame_tree.c - the tree of a flame graph, of one profile or two */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "each_stack.h"
#include "flame_tree.h"

/* A frame of one profile, before equal frames are merged. */
struct named {
	struct flame_frame frame;
	size_t at; /* index in the frames of the first side followed by the second's */
};

struct build {
	struct flame_tree *t;
	const __u32 *frame; /* of each frame of this side: its index in the tree's frames */
	__u32 *of;	    /* see struct flame_tree; NULL: not wanted */
};

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order = strcmp(x->frame.name, y->frame.name);

	return order ? order : strcmp(x->frame.object, y->frame.object);
}

/* A function without a symbol is named by its file only, since offsets differ between builds. */
static int name_frames(struct named *named, size_t at, const struct profile *p)
{
	for (size_t i = 0; i < stack_frames(p); i++) {
		const char *path = stack_frame_path(p, i), *base = profile_base_name(path);
		char name[4096];

		stack_frame_name(p, i, name, sizeof(name));
		named[i].frame.object = base;
		named[i].frame.name = strdup(
			*path && !strncmp(name, path, strlen(path)) ? name + (base - path) : name);
		named[i].at = at + i;
		if (!named[i].frame.name)
			return -ENOMEM;
	}
	return 0;
}

/* Merges equal frames; @index has the merged frame of each frame of both sides. */
static int merge_frames(struct flame_tree *t, struct named *named, size_t n, __u32 *index)
{
	t->frame = calloc(n + 1, sizeof(*t->frame));
	if (!t->frame)
		return -ENOMEM;
	qsort(named, n, sizeof(*named), by_name);
	for (size_t i = 0; i < n; i++) {
		if (!i || by_name(&named[i - 1], &named[i]))
			t->frame[t->nframes++] = named[i].frame;
		index[named[i].at] = (__u32)t->nframes - 1;
	}
	return 0;
}

/* Frees the names that no frame of the tree uses. */
static void named_free(struct named *named, size_t n, const struct flame_tree *t)
{
	for (size_t i = 0, k = 0; named && i < n; i++) {
		if (k < t->nframes && t->frame[k].name == named[i].frame.name)
			k++;
		else
			free(named[i].frame.name);
	}
	free(named);
}

static int find_frames(struct flame_tree *t, const struct profile *a, const struct profile *b,
		       __u32 **index)
{
	size_t of_a = stack_frames(a), n = of_a + (b ? stack_frames(b) : 0);
	struct named *named = calloc(n + 1, sizeof(*named));
	int err;

	*index = calloc(n + 1, sizeof(**index));
	err = named && *index ? name_frames(named, 0, a) : -ENOMEM;
	if (!err && b)
		err = name_frames(named + of_a, of_a, b);
	err = err ?: merge_frames(t, named, n, *index);
	named_free(named, n, t);
	return err;
}

static int add_stack(void *arg, const struct stack *s)
{
	const struct build *b = arg;
	__u32 at = CALL_WHOLE;
	int err = 0;

	for (size_t i = s->n; !err && i-- > 0;)
		err = call_tree_add(&b->t->tree, at, 0, b->frame[s->frame[i]], &at);
	if (err)
		return err;
	b->t->tree.node[at].count += s->samples;
	if (b->of && s->at != CALL_NO_NODE)
		b->of[s->at] = at;
	return 0;
}

/* Moves the counts of a side out of the call tree. */
static int take_counts(struct flame_tree *t, int side)
{
	struct call_tree *tree = &t->tree;

	t->self[side] = calloc(tree->n + 1, sizeof(__u64));
	if (!t->self[side])
		return -ENOMEM;
	for (size_t i = 0; i < tree->n; i++) {
		t->self[side][i] = tree->node[i].count;
		tree->node[i].count = 0;
	}
	return 0;
}

/* Adds a side. The arrays of the first side cover the nodes that existed then. */
static int add_side(struct flame_tree *t, const struct profile *p, const __u32 *frame, int side)
{
	struct build b = { t, frame, side ? NULL : t->of };
	size_t before = t->tree.n;
	__u64 *grown;
	int err = each_stack(p, add_stack, &b) ?: take_counts(t, side);

	if (err || !side)
		return err;
	grown = reallocarray(t->self[0], t->tree.n + 1, sizeof(__u64));
	if (!grown)
		return -ENOMEM;
	t->self[0] = grown;
	for (size_t i = before; i < t->tree.n; i++)
		grown[i] = 0;
	return 0;
}

/* Parents come before their children. */
static int sum_up(struct flame_tree *t, int side)
{
	size_t n = t->tree.n;
	__u64 *total = t->total[side] = calloc(n + 1, sizeof(*total));

	if (!t->self[side])
		t->self[side] = calloc(n + 1, sizeof(__u64));
	if (!total || !t->self[side])
		return -ENOMEM;
	for (size_t i = n; i-- > 0;) {
		total[i] += t->self[side][i];
		if (i >= CALL_ROOTS)
			total[t->tree.node[i].parent] += total[i];
	}
	return 0;
}

int flame_tree_init(struct flame_tree *t, const struct profile *a, const struct profile *b)
{
	__cleanup(freep) __u32 *index = NULL;
	int err;

	*t = (struct flame_tree){ .of = calloc(a->calls.n + 1, sizeof(*t->of)) };
	err = t->of ? find_frames(t, a, b, &index) ?: add_side(t, a, index, 0) : -ENOMEM;
	if (!err && b)
		err = add_side(t, b, index + stack_frames(a), 1);
	for (int side = 0; !err && side < FLAME_SIDES; side++)
		err = sum_up(t, side);
	return err;
}

void flame_tree_fini(struct flame_tree *t)
{
	call_tree_fini(&t->tree);
	for (size_t i = 0; i < t->nframes; i++)
		free(t->frame[i].name);
	free(t->frame);
	free(t->of);
	for (int side = 0; side < FLAME_SIDES; side++) {
		free(t->self[side]);
		free(t->total[side]);
	}
	*t = (struct flame_tree){ 0 };
}

double flame_tree_width(const struct flame_tree *t, size_t node)
{
	double sum = 0;
	int sides = 0;

	for (int side = 0; side < FLAME_SIDES && t->tree.n; side++) {
		if (!t->total[side][CALL_WHOLE])
			continue;
		sum += (double)t->total[side][node] / (double)t->total[side][CALL_WHOLE];
		sides++;
	}
	return sides ? sum / sides : 0;
}

struct ordered {
	__u32 node, parent;
	double width;
};

static int by_parent(const void *a, const void *b)
{
	const struct ordered *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->width != y->width)
		return x->width > y->width ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

int flame_tree_order(const struct flame_tree *t, __u32 **order, __u32 **first)
{
	size_t n = t->tree.n > CALL_ROOTS ? t->tree.n - CALL_ROOTS : 0;
	__cleanup(freep) struct ordered *all = calloc(n + 1, sizeof(*all));

	*order = calloc(n + 1, sizeof(**order));
	*first = calloc(t->tree.n + 2, sizeof(**first));
	if (!all || !*order || !*first)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		size_t node = i + CALL_ROOTS;

		all[i] = (struct ordered){ (__u32)node, t->tree.node[node].parent,
					   flame_tree_width(t, node) };
		(*first)[t->tree.node[node].parent + 1]++;
	}
	qsort(all, n, sizeof(*all), by_parent);
	for (size_t i = 0; i < n; i++)
		(*order)[i] = all[i].node;
	for (size_t i = 1; i <= t->tree.n; i++)
		(*first)[i] += (*first)[i - 1];
	return 0;
}
