/* wait_rows.c - the time of threads by what they wait for, and by lock */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/observe_maps.h"
#include "profile/stack_ends.h"

#include "wait_rows.h"

/* Takes ownership of @name, of which NULL means -ENOMEM. */
static int add(struct rows *rows, char *name, __u64 samples)
{
	if (!name)
		return -ENOMEM;
	if (samples)
		rows->row[rows->n++] = (struct row){ .name = name, .samples = samples };
	else
		free(name);
	return 0;
}

/*
 * The function that has called the library in which the stack @at ends, libc mostly: locks in
 * allocated memory are told apart by it. "": there is none.
 */
static const char *caller(const struct profile *p, __u32 at, char *out, size_t bytes)
{
	const struct call_node *node = p->calls.node;
	__u32 library;

	while (at >= CALL_ROOTS && p->objects[node[at].object].kind == OBJECT_KERNEL)
		at = node[at].parent;
	library = at < CALL_ROOTS ? 0 : node[at].object;
	for (__u32 i = at; i >= CALL_ROOTS; i = node[i].parent) {
		if (node[i].object != library) {
			at = i;
			break;
		}
	}
	if (at < CALL_ROOTS)
		return "";
	return call_frame_name(p, node[at].frame, out, bytes);
}

/* The name of the lock of @w, by itself or by where it is waited for. NULL: out of memory. */
static char *lock_name(const struct profile *p, const struct call_wake *w)
{
	const struct call_frame *f = w->lock ? &p->calls.frame[w->lock - 1] : NULL;
	char where[1024] = "", by[1024] = "", *name = NULL;
	bool known = w->waker >= CALL_ROOTS;

	if (f)
		call_frame_name(p, w->lock - 1, where, sizeof(where));
	else if (w->wait != PROFIL_WAIT_MMAP_LOCK)
		caller(p, w->sleeper, where, sizeof(where));
	if (known)
		caller(p, w->waker, by, sizeof(by));
	if (asprintf(&name, "%s%s%s%s%s", f ? where : stack_wait_key(w->wait),
		     f					? " in "
		     : w->wait != PROFIL_WAIT_MMAP_LOCK ? ", waited for in "
							: "",
		     f ? profile_base_name(p->objects[f->object].path)
		     : w->wait != PROFIL_WAIT_MMAP_LOCK ? where
							: "",
		     known ? ", given by " : "", known ? by : "") < 0)
		return NULL;
	return name;
}

static bool is_lock(__u32 wait)
{
	return wait == PROFIL_WAIT_FUTEX || wait == PROFIL_WAIT_KERNEL_LOCK ||
	       wait == PROFIL_WAIT_MMAP_LOCK;
}

/* The time that threads do not sleep, without that of stacks without a frame: it has no place. */
static int add_states(struct rows *rows, const struct profile *p)
{
	int err = 0;

	for (int s = CALL_RUNNING; s <= CALL_RUNNABLE && !err; s++) {
		enum call_state state = (enum call_state)s;
		__u64 samples = call_tree_state_samples(&p->calls, state);
		char *name = NULL;

		for (int end = 0; end < CALL_ENDS; end++)
			samples -= p->calls.node[call_root((enum call_root)end, state)].count;
		if (asprintf(&name, "(%s)", stack_state_text(state)) < 0)
			name = NULL;
		err = add(rows, name, samples);
	}
	return err;
}

int wait_rows_add(struct rows *rows, const struct profile *p, bool locks)
{
	__u64 known = 0;
	int err = call_tree_has_waits(&p->calls) ? 0 : -ENOENT;

	for (size_t i = 0; i < p->calls.nwakes && !err; i++) {
		const struct call_wake *w = &p->calls.wake[i];

		if (locks && is_lock(w->wait))
			err = add(rows, lock_name(p, w), w->count);
		else if (!locks && w->wait)
			err = add(rows, strdup(stack_wait_key(w->wait)), w->count);
	}
	if (!err && !locks)
		err = add_states(rows, p);
	for (size_t i = 0; i < rows->n; i++)
		known += rows->row[i].samples;
	if (!err && known < p->binned)
		err = add(rows, strdup(locks ? "(no lock)" : "(not known)"), p->binned - known);
	return err;
}
