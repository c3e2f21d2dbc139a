/* stack_ends.c - how many stacks are complete; why and where the others are truncated */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "base/grow.h"
#include "core/observe_maps.h"
#include "jit_runtime.h"
#include "stack_ends.h"

/* A report lists this many cuts at most, each with at least this share. */
#define CUTS_MAX 5
#define CUT_PERCENT_MIN 0.1

/* The outermost frames of truncated stacks, by state. */
#define CUT(why)                                                                        \
	{                                                                               \
		"[cut: " why "]", "[on CPU, cut: " why "]", "[runnable, cut: " why "]", \
			"[asleep, cut: " why "]"                                        \
	}

static const struct {
	const char *key, *text, *frame[CALL_STATES];
} ends[CALL_ENDS] = {
	[CALL_WHOLE] = { "whole",
			 "reach the start of their thread",
			 { NULL, "[on CPU]", "[runnable]", "[asleep]" } },
	[CALL_NO_TABLE] = { "no_table", "no unwind rules and no frame pointer",
			    CUT("no unwind rules") },
	[CALL_BEYOND] = { "expression", "an unwind rule that is an expression",
			  CUT("unwind expression") },
	[CALL_UNREADABLE] = { "unreadable", "an unreadable stack", CUT("unreadable stack") },
	[CALL_NOWHERE] = { "nowhere", "a return address that is not in code", CUT("not in code") },
	[CALL_DEEP] = { "too_deep", "more frames than are walked", CUT("too deep") },
	[CALL_NOT_YET] = { "not_yet", "before its unwind rules were read",
			   CUT("rules not read yet") },
	[CALL_NO_ROOM] = { "no_room", "no room for its unwind rules",
			   CUT("no room for unwind rules") },
};

static const struct {
	const char *key, *text;
} states[CALL_STATES] = {
	[CALL_RUNNING] = { "running", "on CPU" },
	[CALL_RUNNABLE] = { "runnable", "waiting for a CPU" },
	[CALL_ASLEEP] = { "asleep", "asleep" },
};

const char *stack_end_text(enum call_root end)
{
	return ends[end].text;
}

const char *stack_whole_text(const struct profile *p)
{
	return profile_is_branches(p) ? "are branches, not calls" : ends[CALL_WHOLE].text;
}

const char *stack_end_key(enum call_root end)
{
	return ends[end].key;
}

const char *stack_root_frame(__u32 root)
{
	return ends[call_root_end(root)].frame[call_root_state(root)];
}

const char *stack_state_key(enum call_state state)
{
	return states[state].key;
}

const char *stack_state_text(enum call_state state)
{
	return states[state].text;
}

enum call_state stack_state_of(const char *key)
{
	int i = CALL_RUNNING;

	while (i < CALL_STATES && strcmp(key, states[i].key) != 0)
		i++;
	return (enum call_state)i;
}

static const char *const waits[PROFIL_WAITS] = {
	[PROFIL_WAIT_UNKNOWN] = "unknown",
	[PROFIL_WAIT_FUTEX] = "futex",
	[PROFIL_WAIT_KERNEL_LOCK] = "kernel lock",
	[PROFIL_WAIT_MMAP_LOCK] = "mmap lock",
	[PROFIL_WAIT_TIMER] = "timer",
	[PROFIL_WAIT_POLL] = "poll",
	[PROFIL_WAIT_DISK] = "disk",
	[PROFIL_WAIT_PIPE] = "pipe",
	[PROFIL_WAIT_SOCKET] = "socket",
	[PROFIL_WAIT_DEVICE] = "device",
	[PROFIL_WAIT_EVENT] = "event",
	[PROFIL_WAIT_ASYNC_IO] = "async I/O",
	[PROFIL_WAIT_FILE_LOCK] = "file lock",
	[PROFIL_WAIT_IPC] = "ipc",
	[PROFIL_WAIT_PROCESS] = "process",
	[PROFIL_WAIT_SIGNAL] = "signal",
	[PROFIL_WAIT_STOPPED] = "stopped",
	[PROFIL_WAIT_FAULT] = "fault",
	[PROFIL_WAIT_OTHER] = "other",
};

const char *stack_wait_key(__u32 wait)
{
	return waits[wait < PROFIL_WAITS ? wait : PROFIL_WAIT_UNKNOWN];
}

__u32 stack_wait_of(const char *key)
{
	__u32 i = PROFIL_WAITS;

	while (--i && strcmp(key, waits[i]) != 0)
		;
	return i;
}

static const char *cure_of_runtime(const char *name)
{
	const struct jit_runtime *r = jit_runtime_find(name);

	return r ? r->stacks_cure
		 : "compiled at run time, without unwind rules: its compiler must keep frame "
		   "pointers";
}

const char *stack_end_cure(enum call_root end, const struct object *o)
{
	switch (end) {
	case CALL_DEEP:
		return "the outermost frames are missing, the inner ones are right";
	case CALL_NOT_YET:
		return o->kind == OBJECT_FILE ? "its first moments only; the next run has the "
						"rules from the start"
					      : NULL;
	case CALL_NO_ROOM:
		return "profile fewer programs at a time: they share one table of unwind rules";
	case CALL_NO_TABLE:
		break;
	case CALL_NOWHERE: /* of a file: it has rules or frame pointers, but wrong ones here */
		if (o->kind == OBJECT_ANON)
			break;
		return NULL;
	default:
		return NULL;
	}
	if (o->kind == OBJECT_ANON)
		return cure_of_runtime(o->unnamed);
	return o->kind == OBJECT_FILE ? "gcc and clang: -fasynchronous-unwind-tables; other "
					"compilers: frame pointers (GHC has none, but a profiler "
					"of its own: -prof); debug symbols do not help"
				      : NULL;
}

bool has_stacks(const struct profile *p)
{
	return p->calls.n >= CALL_ROOTS && call_tree_sum(&p->calls);
}

bool stack_is_thread(const struct profile *p, const struct call_tree *t, __u32 node)
{
	const struct call_node *n = &t->node[node];
	const struct object *o = &p->objects[n->object];

	return node >= CALL_ROOTS && n->parent < CALL_ROOTS && o->kind == OBJECT_INTERPRETED &&
	       !strcmp(o->path, interpreted_language(PROFIL_LANGUAGE_THREADS));
}

double stack_ends_percent(const struct stack_ends *e, __u64 samples)
{
	return e->sum ? 100.0 * (double)samples / (double)e->sum : 0;
}

static int by_samples(const void *a, const void *b)
{
	const struct stack_cut *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return x->object != y->object ? (x->object < y->object ? -1 : 1)
				      : (int)x->end - (int)y->end;
}

/* @samples has CALL_ENDS elements for each object. */
static int list_cuts(struct stack_ends *e, size_t nobjects, const __u64 *samples)
{
	for (size_t i = 0; i < nobjects * CALL_ENDS; i++) {
		struct stack_cut *cut;

		if (!samples[i] || i % CALL_ENDS == CALL_WHOLE)
			continue;
		cut = grow(e->cut, e->ncuts, sizeof(*cut));
		if (!cut)
			return -ENOMEM;
		e->cut = cut;
		e->cut[e->ncuts++] = (struct stack_cut){ (enum call_root)(i % CALL_ENDS),
							 (__u32)(i / CALL_ENDS), samples[i] };
	}
	if (e->ncuts)
		qsort(e->cut, e->ncuts, sizeof(*e->cut), by_samples);
	while (e->nshown < e->ncuts && e->nshown < CUTS_MAX &&
	       stack_ends_percent(e, e->cut[e->nshown].samples) >= CUT_PERCENT_MIN)
		e->nshown++;
	return 0;
}

int stack_ends_init(struct stack_ends *e, const struct profile *p)
{
	const struct call_tree *t = &p->calls;
	__cleanup(freep) __u64 *samples = calloc(p->nobjects * CALL_ENDS + 1, sizeof(*samples));
	__cleanup(freep) __u32 *outermost = calloc(t->n + 1, sizeof(*outermost));

	*e = (struct stack_ends){ 0 };
	if (!samples || !outermost)
		return -ENOMEM;
	for (__u32 i = 0; i < t->n; i++) {
		const struct call_node *n = &t->node[i];
		__u32 top =
			i < CALL_ROOTS || n->parent < CALL_ROOTS || stack_is_thread(p, t, n->parent)
				? i
				: outermost[n->parent];
		enum call_root end = call_root_end(call_tree_root(t, top));

		outermost[i] = top;
		e->sum += n->count;
		e->ended[end] += n->count;
		if (i >= CALL_ROOTS)
			samples[t->node[top].object * CALL_ENDS + end] += n->count;
	}
	e->without = p->total - p->lost > e->sum ? p->total - p->lost - e->sum : 0;
	return list_cuts(e, p->nobjects, samples);
}

void stack_ends_fini(struct stack_ends *e)
{
	free(e->cut);
	*e = (struct stack_ends){ 0 };
}

/* Appends to @out. */
__attribute__((format(printf, 3, 4))) static void append(char *out, size_t bytes,
							 const char *format, ...)
{
	size_t n = strlen(out);
	va_list args;

	va_start(args, format);
	vsnprintf(out + n, bytes - n, format, args);
	va_end(args);
}

const char *stack_ends_summary(char *out, size_t bytes, const struct profile *p)
{
	struct stack_ends e;

	*out = '\0';
	if (!stack_ends_init(&e, p))
		append(out, bytes, "%.2f %% of the stacks %s",
		       stack_ends_percent(&e, e.ended[CALL_WHOLE]), stack_whole_text(p));
	for (size_t i = 0; i < e.nshown; i++) {
		const struct stack_cut *cut = &e.cut[i];
		const struct object *o = &p->objects[cut->object];
		const char *cure = stack_end_cure(cut->end, o);

		append(out, bytes, "; %.2f %% cut in %s: %s%s%s%s",
		       stack_ends_percent(&e, cut->samples), profile_base_name(o->path),
		       stack_end_text(cut->end), cure ? " (" : "", cure ? cure : "",
		       cure ? ")" : "");
	}
	if (e.without)
		append(out, bytes, "; %llu samples have no stack", e.without);
	if (p->node_full)
		append(out, bytes, "; %llu stacks lack their innermost frames", p->node_full);
	stack_ends_fini(&e);
	return out;
}

const char *call_frame_name(const struct profile *p, __u32 frame, char *out, size_t bytes)
{
	const struct call_frame *f = &p->calls.frame[frame];

	const struct object *o = &p->objects[f->object];

	if (f->name)
		snprintf(out, bytes, "%s", f->name);
	else if (o->kind == OBJECT_KERNEL && !f->offset) /* its addresses were hidden */
		snprintf(out, bytes, "%s", o->path);
	else
		snprintf(out, bytes, "%s+0x%llx", o->path, f->offset);
	return out;
}
