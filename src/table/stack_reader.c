/* stack_reader.c - reads the calling contexts of a table into a profile's call tree */
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "core/proto.h"

#include "stack_reader.h"

_Static_assert((int)CALL_WHOLE == PROFIL_STACK_WHOLE && (int)CALL_NO_ROOM == PROFIL_STACK_NO_ROOM,
	       "roots have the same numbers in the kernel and here");
_Static_assert((int)CALL_RUNNING == PROFIL_STATE_RUNNING &&
		       (int)CALL_ASLEEP == PROFIL_STATE_ASLEEP && (int)CALL_STATES == PROFIL_STATES,
	       "states as well");
_Static_assert((int)CALL_BY_INTERRUPT == PROFIL_WAKER_INTERRUPT &&
		       (int)CALL_WAKERS == PROFIL_WAKERS,
	       "wakers as well");

#define PATH_MAX_NODES (PROFIL_FRAMES_MAX + PROFIL_KERNEL_FRAMES_MAX + 1)

struct tree_reader {
	const struct table_reader *table;
	const struct profil_node *copy; /* of all nodes, by index; NULL: the table's are read */
	struct call_tree *into;
	__u32 *index; /* of each node in each state: index + 1; 0: not read yet */
	__u32 *of;    /* the part of the state that is being read */
	bool pending; /* nodes were left out: a frame's image is not known yet */
};

static int reader_init(struct tree_reader *r, const struct table_reader *table,
		       struct call_tree *into)
{
	const struct profil_table *head = table->table.head;
	size_t states = head->flags & PROFIL_OBSERVE_WAITS ? CALL_STATES : 1;

	*r = (struct tree_reader){ .table = table, .into = into };
	r->index = calloc((head->nodes + 1u) * states, sizeof(*r->index));
	return r->index ? 0 : -ENOMEM;
}

static const struct profil_node *node_at(const struct tree_reader *r, __u32 number)
{
	__u32 index = number - PROFIL_STACK_ROOTS;

	return r->copy ? &r->copy[index] : table_node(&r->table->table, index);
}

static bool is_node(const struct tree_reader *r, __u32 number)
{
	return number >= PROFIL_STACK_ROOTS &&
	       number - PROFIL_STACK_ROOTS < r->table->table.head->nodes;
}

/* The number of the group that @place stands for; 0: none. */
static __u32 group_of(const struct tree_reader *r, __u64 place)
{
	__u32 group = profil_place_offset(place);

	return profil_place_group(place) == PROFIL_NOTE_GROUP && !profil_place_image(place) &&
			       group <= r->table->table.head->groups
		       ? group
		       : 0;
}

/* Says whether the groups of the tree are threads, which are the outermost frames. */
static bool has_threads(const struct tree_reader *r)
{
	return r->table->table.head->group_by & PROFIL_GROUP_THREAD;
}

/* Says whether the node is complete, and its image or group was found. */
static bool is_known(const struct tree_reader *r, const struct profil_node *node)
{
	__u32 image = profil_place_image(node->place), group = group_of(r, node->place);

	if (group)
		return r->table->group[group];
	return node->place && image && image <= r->table->table.head->images &&
	       r->table->object[image];
}

/*
 * Collects the nodes from @number outwards, to its root or to a node that was read, in @path.
 * Returns their number, and in *@parent the index above them; -EAGAIN if a frame is not known yet,
 * but will be shortly.
 */
static ssize_t path_of(const struct tree_reader *r, __u32 number, enum call_state state,
		       __u32 *path, __u32 *parent)
{
	ssize_t n = 0;

	while (is_node(r, number) && n < PATH_MAX_NODES) {
		if (r->of[number - PROFIL_STACK_ROOTS]) {
			*parent = r->of[number - PROFIL_STACK_ROOTS] - 1;
			return n;
		}
		if (!is_known(r, node_at(r, number)))
			return -EAGAIN;
		path[n++] = number;
		number = node_at(r, number)->parent;
	}
	*parent = call_root(
		number <= PROFIL_STACK_NO_ROOM ? (enum call_root)number : CALL_UNREADABLE, state);
	return n;
}

/* Finds the object and the profile's offset of @key, the place of a node. */
static void locate(const struct tree_reader *r, __u64 key, __u32 *object, __u64 *offset)
{
	__u32 image = profil_place_image(key);
	__u32 thread = group_of(r, key);
	struct place place = { .offset = thread ? table_reader_thread(thread) : 0 };

	*object = thread ? r->table->threads - 1 : 0;
	if (image && image <= r->table->table.head->images && r->table->object[image]) {
		*object = r->table->object[image] - 1;
		table_reader_locate(r->table, &place, image, profil_place_offset(key));
	}
	*offset = place.offset;
}

/* What is noted of the samples of a node. */
struct notes {
	enum call_state state;
	__u32 waker; /* a node's number, or enum profil_waker */
	__u64 wait;  /* a note; 0: not known */
};

/* Reads the notes from @number on; returns the node that they are below. */
static __u32 notes_of(const struct tree_reader *r, __u32 number, struct notes *notes)
{
	*notes = (struct notes){ .state = CALL_NO_STATE };
	if (r->table->table.head->flags & PROFIL_OBSERVE_WAITS)
		notes->state = CALL_RUNNING;
	while (is_node(r, number)) {
		const struct profil_node *node = node_at(r, number);
		__u32 value = profil_place_offset(node->place);

		switch (profil_place_group(node->place)) {
		case PROFIL_NOTE_WAKER:
			notes->waker = value;
			break;
		case PROFIL_NOTE_WAIT:
		case PROFIL_NOTE_LOCK:
			notes->wait = node->place;
			break;
		case PROFIL_NOTE_STATE:
			notes->state = value < CALL_STATES ? (enum call_state)value : CALL_NO_STATE;
			break;
		default:
			return number;
		}
		number = node->parent;
	}
	return number;
}

/*
 * Says whether both are frames of a kernel whose addresses are hidden: they are one, since they
 * have no function.
 */
static bool is_in_same_kernel(const struct tree_reader *r, const struct call_node *node,
			      __u32 caller)
{
	const struct call_node *c = &r->into->node[caller];

	return caller >= CALL_ROOTS && !node->offset && !c->offset && node->object == c->object &&
	       r->table->profile->objects[c->object].kind == OBJECT_KERNEL;
}

/*
 * Finds or adds the stack of @number, in @state. -EAGAIN: see path_of(). A node of a group is none
 * here, but a property of the outermost frames below it; it is its root.
 */
static int enter(struct tree_reader *r, __u32 number, enum call_state state, __u32 *at)
{
	__u32 path[PATH_MAX_NODES], group = 0;
	ssize_t n;

	r->of = r->index + (size_t)state * r->table->table.head->nodes;
	n = path_of(r, number, state, path, at);
	if (n < 0)
		return (int)n;
	while (n-- > 0) {
		__u64 place = node_at(r, path[n])->place;
		struct call_node node = { .group = group };
		int err;

		if (group_of(r, place) && !has_threads(r)) {
			group = r->table->group[group_of(r, place)];
			continue;
		}
		locate(r, place, &node.object, &node.offset);
		if (!is_in_same_kernel(r, &node, *at)) {
			err = call_tree_add_like(r->into, *at, &node, at);
			if (err)
				return err;
		}
		r->of[path[n] - PROFIL_STACK_ROOTS] = *at + 1;
	}
	return 0;
}

/* Sets what @wake waits for, by @note. */
static void set_wait(const struct tree_reader *r, struct call_wake *wake, __u64 note)
{
	if (profil_place_group(note) == PROFIL_NOTE_LOCK) {
		locate(r, note, &wake->object, &wake->offset);
		wake->wait = r->table->profile->objects[wake->object].kind == OBJECT_KERNEL
				     ? PROFIL_WAIT_KERNEL_LOCK
				     : PROFIL_WAIT_FUTEX;
	} else if (profil_place_offset(note) < PROFIL_WAITS) {
		wake->wait = profil_place_offset(note);
	}
}

/* Adds what is known of @count samples of sleeps at the stack @at. Their wakers ran then. */
static int add_wake(struct tree_reader *r, __u32 at, const struct notes *notes, __u64 count)
{
	struct call_wake wake = { .sleeper = at, .waker = notes->waker, .count = count };
	int err = 0;

	set_wait(r, &wake, notes->wait);
	if (is_node(r, notes->waker))
		err = enter(r, notes->waker, CALL_RUNNING, &wake.waker);
	else if (notes->waker >= CALL_WAKERS)
		wake.waker = 0;
	if (err == -EAGAIN) {
		wake.waker = 0;
		err = 0;
	}
	return err ? err : call_tree_add_wake(r->into, &wake);
}

/* Adds the samples of @c. */
static int read_node(struct tree_reader *r, const struct stack_count *c)
{
	struct notes notes;
	__u32 number = notes_of(r, PROFIL_STACK_ROOTS + c->node, &notes), at;
	int err = enter(r, number, c->state ? c->state : notes.state, &at);

	if (err == -EAGAIN) {
		r->pending = true;
		return 0;
	}
	if (c->wait)
		notes.wait = c->wait;
	if (!err && is_node(r, number) && at < CALL_ROOTS && group_of(r, node_at(r, number)->place))
		return 0; /* of a group, without a frame: in no stack */
	if (!err)
		err = call_tree_count(r->into, at, c->count);
	if (!err && (notes.waker || notes.wait))
		err = add_wake(r, at, &notes, c->count);
	return err;
}

/* @copy: as in struct tree_reader. */
static int read_tree(const struct table_reader *table, const struct profil_node *copy,
		     struct call_tree *into, bool *pending)
{
	const struct profil_table *head = table->table.head;
	struct tree_reader r;
	int err = reader_init(&r, table, into);

	r.copy = copy;
	for (__u32 i = 0; head->stack_mode && i < head->nodes && !err; i++) {
		const struct profil_node *node = node_at(&r, PROFIL_STACK_ROOTS + i);

		if (node->count && node->place)
			err = read_node(&r,
					&(struct stack_count){ .node = i, .count = node->count });
	}
	*pending = r.pending;
	free(r.index);
	return err;
}

/*
 * An image is complete some microseconds after its first sample, and nodes are freed in some
 * milliseconds, every ten seconds at most.
 */
#define ATTEMPTS 10

static __u32 folds_of(const struct table *t)
{
	return __atomic_load_n(&t->head->folds, __ATOMIC_ACQUIRE);
}

/* Says whether nodes are, or were freed since the counter was @before. */
static bool were_freed(const struct table *t, __u32 before)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return before % 2 || before != folds_of(t);
}

/* Reads the tree, whose images are not all known yet, into the empty @into. */
static int read_stacks(struct table_reader *table, struct call_tree *into)
{
	bool pending = true;
	int err = 0;

	for (int i = 0; i < ATTEMPTS && pending && !err; i++) {
		__u32 folds = folds_of(&table->table);

		call_tree_fini(into);
		err = table_reader_update(table) ?: read_tree(table, NULL, into, &pending);
		pending |= were_freed(&table->table, folds);
	}
	return err;
}

/* A node that was added meanwhile, below one that was not there yet when its index was copied. */
static void copy_callers(const struct table *t, struct profil_node *copy, __u32 i)
{
	__u32 at = copy[i].parent - PROFIL_STACK_ROOTS;

	while (at < t->head->nodes && !copy[at].place) {
		copy[at] = *table_node(t, at);
		copy[at].count = 0;
		at = copy[at].parent - PROFIL_STACK_ROOTS;
	}
}

__u32 stack_reader_copy(const struct table *t, struct profil_node *copy)
{
	__u32 folds = 0;
	bool again = true;

	for (int i = 0; i < ATTEMPTS && again; i++) {
		folds = folds_of(t);
		for (__u32 k = 0; k < t->head->nodes; k++) {
			const struct profil_node *node = table_node(t, k);

			if (i || node->id)
				copy[k] = *node;
		}
		for (__u32 k = 0; k < t->head->nodes; k++) {
			if (copy[k].count)
				copy_callers(t, copy, k);
		}
		again = were_freed(t, folds);
	}
	return folds;
}

int stack_reader_read_copy(const struct table_reader *table, const struct profil_node *copy,
			   struct call_tree *into)
{
	bool pending;

	return read_tree(table, copy, into, &pending);
}

int stack_reader_read_all(struct table_reader *table, struct profile *into)
{
	int err = table_reader_read(table, into) ?: read_stacks(table, &into->calls);

	profile_borrow_again(into, table->profile);
	call_tree_limit(&into->calls, into->total - into->lost);
	return err;
}

int stack_reader_read_since(struct table_reader *table, struct table_seen *seen,
			    struct call_tree *last, struct profile *into)
{
	struct call_tree now = { 0 };
	int err = table_reader_read_since(table, seen, into) ?: read_stacks(table, &now);

	profile_borrow_again(into, table->profile);
	if (!err && now.n)
		err = call_tree_difference(&into->calls, last, &now, into->total - into->lost);
	if (err) {
		call_tree_fini(&now);
		return err;
	}
	call_tree_fini(last);
	*last = now;
	return 0;
}

int stack_reader_add(const struct table_reader *table, const struct stack_count *count, size_t n,
		     struct call_tree *into)
{
	struct tree_reader r;
	int err = reader_init(&r, table, into);

	for (size_t i = 0; i < n && !err; i++)
		err = read_node(&r, &count[i]);
	free(r.index);
	return err;
}

static int series_init(struct stack_series *s, const struct table_reader *table)
{
	struct tree_reader r;
	int err = reader_init(&r, table, &s->tree);

	s->index = r.index;
	s->seen = calloc(table->table.head->nodes + 1u, sizeof(*s->seen));
	return err || !s->seen ? -ENOMEM : call_tree_init(&s->tree);
}

/* A node whose frames are not known yet is left to the next call. */
int stack_series_read(struct stack_series *s, struct table_reader *table)
{
	struct tree_reader r = { .table = table, .into = &s->tree };
	int err = table_reader_update(table);

	if (!err && !s->seen)
		err = series_init(s, table);
	r.index = s->index;
	for (__u32 i = 0; i < table->table.head->nodes && !err; i++) {
		const struct profil_node *node = node_at(&r, PROFIL_STACK_ROOTS + i);
		__u32 count = __atomic_load_n(&node->count, __ATOMIC_RELAXED);

		if (count == s->seen[i] || !node->place)
			continue;
		r.pending = false;
		err = read_node(&r,
				&(struct stack_count){ .node = i, .count = count - s->seen[i] });
		if (!r.pending)
			s->seen[i] = count;
	}
	s->tree.nwakes = 0;
	return err;
}

void stack_series_fini(struct stack_series *s)
{
	call_tree_fini(&s->tree);
	free(s->index);
	free(s->seen);
}
