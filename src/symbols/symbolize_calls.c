/* symbolize_calls.c - turns the places of stacks into functions */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "profile/stack_ends.h"

#include "demangle.h"
#include "dwarf_lines.h"
#include "elf_symbols.h"
#include "symbolize_calls.h"
#include "variables.h"

#define ROOM_MIN 1024
#define INLINED_MAX 16

/*
 * A function of @object, by its start, or by its name, which is a unique pointer: if inlined, and
 * if a compiler at run time made it, which can do so several times.
 */
struct key {
	__u64 start;
	const char *name;
	__u32 object;
	__u32 frame; /* index + 1; 0: free slot */
};

struct work {
	struct profile *profile;
	struct symbolize_cache *cache;
	struct key *slot;
	size_t room;
	struct call_tree tree; /* with inlined functions */
	void *generated;       /* names, for tsearch() */
};

static struct key *slot_of(const struct work *w, const struct key *k)
{
	__u64 h =
		(k->start ^ (__u64)(size_t)k->name ^ (__u64)k->object << 44) * 0x9e3779b97f4a7c15u;
	size_t at = (size_t)(h ^ h >> 32) & (w->room - 1);

	while (w->slot[at].frame && (w->slot[at].start != k->start || w->slot[at].name != k->name ||
				     w->slot[at].object != k->object))
		at = (at + 1) & (w->room - 1);
	return &w->slot[at];
}

/* Keeps half of the slots free. */
static int make_room(struct work *w)
{
	struct key *old = w->slot;
	size_t room = w->room;

	if (2 * (w->tree.nframes + 1) < room)
		return 0;
	w->room = room ? 2 * room : ROOM_MIN;
	w->slot = calloc(w->room, sizeof(*w->slot));
	for (size_t i = 0; w->slot && i < room; i++) {
		if (old[i].frame)
			*slot_of(w, &old[i]) = old[i];
	}
	free(old);
	return w->slot ? 0 : -ENOMEM;
}

/* Finds or adds the frame of @k with that place and name; NULL: unnamed. */
static int frame_of(struct work *w, struct key *k, struct call_frame f, const char *name,
		    size_t len, __u32 *frame)
{
	int err = make_room(w);
	struct key *slot;

	if (err < 0)
		return err;
	slot = slot_of(w, k);
	if (!slot->frame) {
		f.name = name ? demangle(name, len) : NULL;
		if (name && !f.name)
			return -ENOMEM;
		err = call_tree_add_frame(&w->tree, &f, frame);
		if (err < 0)
			return err;
		*slot = *k;
		slot->frame = *frame + 1;
	}
	*frame = slot->frame - 1;
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Makes the key of code that was made at run time: one for all instances in the process. */
static int generated_key(struct work *w, struct key *k, const struct symbols_range *range)
{
	char *own = strndup(range->name, range->name_len);
	char *const *known = own ? tsearch(own, &w->generated, by_text) : NULL;

	if (!known || *known != own)
		free(own);
	if (!known)
		return -ENOMEM;
	*k = (struct key){ .name = *known, .object = k->object };
	return 0;
}

static int function_at(struct work *w, __u32 object, __u64 offset, __u32 *frame)
{
	struct key k = { .object = object };
	struct call_frame f = { .object = object };
	struct symbols_range range;
	struct symbols *s;
	int err = symbolize_cached(&s, w->profile, object, w->cache);
	bool named;

	if (err < 0)
		return err;
	symbols_find(s, offset, &range);
	f.offset = k.start = range.start;
	named = range.kind == SYMBOLS_NAMED;
	if (named && w->profile->objects[object].kind == OBJECT_ANON)
		err = generated_key(w, &k, &range);
	return err < 0 ? err : frame_of(w, &k, f, named ? range.name : NULL, range.name_len, frame);
}

/*
 * Says whether goroutines or threads of Go start in the function @name. It has no rules in a
 * stripped program, and what it finds where a caller's frame pointer would be is 0.
 */
static bool is_start_in_go(const char *name)
{
	static const char *const starts[] = { "runtime.goexit", "runtime.mstart",
					      "runtime.rt0_go" };

	for (size_t i = 0; name && i < sizeof(starts) / sizeof(*starts); i++) {
		size_t n = strlen(starts[i]);

		if (!strncmp(name, starts[i], n) && (!name[n] || name[n] == '.'))
			return true;
	}
	return false;
}

/* The root right above @parent, or above the thread that it is; CALL_ROOTS: it is a function. */
static __u32 root_above(const struct work *w, __u32 parent)
{
	if (parent < CALL_ROOTS)
		return parent;
	return stack_is_thread(w->profile, &w->tree, parent) ? w->tree.node[parent].parent
							     : CALL_ROOTS;
}

/* Replaces @parent, a root or a thread, by that of complete stacks. */
static int make_whole(struct work *w, __u32 *parent)
{
	__u32 whole = call_root(CALL_WHOLE, call_root_state(root_above(w, *parent)));
	struct call_node thread = w->tree.node[*parent];
	int err;

	if (*parent < CALL_ROOTS) {
		*parent = whole;
		return 0;
	}
	err = call_tree_add_like(&w->tree, whole, &thread, parent);
	if (!err)
		w->tree.node[*parent].frame = thread.frame;
	return err;
}

/*
 * Says whether the outermost frame @n is where makecontext() starts: its return address is the very
 * start of a function, behind padding, so that no call made it.
 */
static bool is_start_of_context(struct work *w, const struct call_node *n, __u64 at, __u32 root)
{
	struct symbols_range before, after;
	struct symbols *s;

	if (at == n->offset || root == CALL_ROOTS || call_root_end(root) == CALL_DEEP ||
	    call_root_end(root) == CALL_NOT_YET ||
	    symbolize_cached(&s, w->profile, n->object, w->cache) < 0)
		return false;
	symbols_find(s, at, &before);
	symbols_find(s, n->offset, &after);
	return before.kind == SYMBOLS_PAGE && after.kind != SYMBOLS_PAGE &&
	       after.start == n->offset;
}

/* Adds node @n below @parent, and the functions inlined at @at below it. */
static int add_node(struct work *w, const struct call_node *n, __u64 at, __u32 parent, __u32 *to)
{
	const char *inlined[INLINED_MAX];
	size_t i = lines_inlines(symbolize_cached_lines(w->profile, n->object, w->cache), at,
				 inlined, INLINED_MAX);
	__u32 frame, root = root_above(w, parent);
	int err = 0;

	if (is_start_of_context(w, n, at, root)) {
		err = make_whole(w, &parent);
		root = CALL_WHOLE;
		at = n->offset;
	}
	err = err ?: function_at(w, n->object, at, &frame);
	if (!err && root < CALL_ROOTS && call_root_end(root) == CALL_NO_TABLE &&
	    is_start_in_go(w->tree.frame[frame].name))
		err = make_whole(w, &parent);
	if (!err)
		err = call_tree_add_like(&w->tree, parent, n, to);
	if (!err)
		w->tree.node[*to].frame = frame;
	while (!err && i-- > 0) {
		struct key k = { .object = n->object, .name = inlined[i] };

		err = call_tree_add_like(&w->tree, *to, n, to);
		if (!err)
			err = frame_of(w, &k, (struct call_frame){ .object = n->object }, k.name,
				       strlen(k.name), &w->tree.node[*to].frame);
	}
	return err;
}

/* A caller's offset is its return address, after the call; a leaf's is the instruction itself. */
static int add_nodes(struct work *w, const bool *calls)
{
	const struct call_tree *from = &w->profile->calls;
	__cleanup(freep) __u32 *to = calloc(from->n + 1, sizeof(*to));
	int err = to ? 0 : -ENOMEM;

	for (__u32 i = 0; !err && i < from->n; i++) {
		const struct call_node *n = &from->node[i];

		to[i] = i;
		if (i >= CALL_ROOTS)
			err = add_node(w, n, n->offset - (calls[i] && n->offset), to[n->parent],
				       &to[i]);
		if (!err && i >= CALL_ROOTS)
			w->tree.node[to[i]].count += n->count;
	}
	for (size_t i = 0; !err && i < CALL_ROOTS; i++)
		w->tree.node[i].count = from->node[i].count;
	return err ?: call_tree_add_wakes(&w->tree, from, to, NULL)
			     ?: call_tree_add_times(&w->tree, from, to);
}

/* Names the locks of @object: each is a frame. @v has room for all of them. */
static int name_locks(struct work *w, __u32 object, struct variable *v)
{
	struct call_tree *t = &w->tree;
	size_t n = 0, at = 0;
	int err;

	for (size_t i = 0; i < t->nwakes; i++) {
		if (t->wake[i].offset && t->wake[i].object == object)
			v[n++] = (struct variable){ .offset = t->wake[i].offset };
	}
	err = n ? variables_name(v, n, &w->profile->objects[object]) : 0;
	for (size_t i = 0; i < t->nwakes && at < n && !err; i++) {
		struct call_wake *wake = &t->wake[i];
		struct call_frame f = { .object = object, .offset = wake->offset };
		struct key k = { .object = object, .start = wake->offset };
		const char *name;
		__u32 frame;

		if (!wake->offset || wake->object != object)
			continue;
		name = v[at++].name;
		err = frame_of(w, &k, f, name, name ? strlen(name) : 0, &frame);
		wake->lock = err ? 0 : frame + 1;
	}
	while (n)
		free(v[--n].name);
	return err;
}

static int name_all_locks(struct work *w)
{
	__cleanup(freep) struct variable *v = calloc(w->tree.nwakes + 1, sizeof(*v));
	int err = v ? 0 : -ENOMEM;

	for (__u32 i = 0; i < w->profile->nobjects && w->tree.nwakes && !err; i++)
		err = name_locks(w, i, v);
	return err;
}

static int rebuild(struct work *w)
{
	const struct call_tree *t = &w->profile->calls;
	__cleanup(freep) bool *calls = calloc(t->n + 1, sizeof(*calls));
	int err;

	if (!calls)
		return -ENOMEM;
	for (size_t i = CALL_ROOTS; i < t->n; i++)
		calls[t->node[i].parent] = true;
	err = add_nodes(w, calls) ?: name_all_locks(w);
	if (err < 0)
		return err;
	call_tree_fini(&w->profile->calls);
	w->profile->calls = w->tree;
	w->tree = (struct call_tree){ 0 };
	return 0;
}

int symbolize_calls(struct profile *p, struct symbolize_cache *cache)
{
	struct work w = { .profile = p, .cache = cache };
	int err = p->calls.n > CALL_ROOTS ? rebuild(&w) : 0;

	free(w.slot);
	tdestroy(w.generated, free);
	call_tree_fini(&w.tree);
	return err;
}
