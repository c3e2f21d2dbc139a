/* firefox.c - the processed format of Firefox Profiler, as its version 48 has it */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "analysis/sample_location.h"
#include "format.h"
#include "profile/each_stack.h"
#include "profile/json_name.h"
#include "profile/stack_ends.h"
#include "quantity.h"

/*
 * Each thread has tables of its own, which are columns: functions, frames of these, and stacks of
 * frames, each with the index of its caller. A sample is a stack with a time and a weight. The
 * samples of a profile have no order: where there are no slices of time, their times follow each
 * other as what they stand for adds up.
 *
 * The viewer takes newer and older versions; this one is what its own changelog describes.
 */
#define VERSION 48
#define GECKO_VERSION 27

enum category { OTHER, USER, KERNEL };

/* A thread that is being written: a process's, or all of the profile's. */
struct tables {
	const struct profile *profile;
	/* With stacks. */
	const __u32 *thread; /* above each node: its number; 0: none. NULL: there are none */
	__u32 number;	     /* of this one */
	__u32 *function;     /* of each frame: its function + 1; 0: none yet */
	__u32 *stack;	     /* of each frame alone, then of each node: likewise */
	json_t *names, *resources, *categories; /* of functions; frames are the same */
	json_t *frames, *prefixes;		/* of stacks */
	json_t *stacks, *times, *weights;	/* of samples */
	double now_ms;
	bool failed;
};

static void tables_init(struct tables *t, const struct profile *p)
{
	*t = (struct tables){ .profile = p,
			      .names = json_array(),
			      .resources = json_array(),
			      .categories = json_array(),
			      .frames = json_array(),
			      .prefixes = json_array(),
			      .stacks = json_array(),
			      .times = json_array(),
			      .weights = json_array() };
}

static void append(struct tables *t, json_t *column, json_t *value)
{
	t->failed |= json_array_append_new(column, value) != 0;
}

/* Adds a function; @object is below 0: none. */
static json_int_t add_function(struct tables *t, const char *name, json_int_t object)
{
	const struct profile *p = t->profile;
	enum category c = object < 0				     ? OTHER
			  : p->objects[object].kind == OBJECT_KERNEL ? KERNEL
								     : USER;

	append(t, t->names, jsonname(name));
	append(t, t->resources, json_integer(object));
	append(t, t->categories, json_integer(c));
	return (json_int_t)json_array_size(t->names) - 1;
}

/* Adds a stack; @caller is below 0: none. */
static json_int_t add_stack(struct tables *t, json_int_t frame, json_int_t caller)
{
	append(t, t->frames, json_integer(frame));
	append(t, t->prefixes, caller < 0 ? json_null() : json_integer(caller));
	return (json_int_t)json_array_size(t->frames) - 1;
}

static double tick_ms(const struct profile *p)
{
	return p->tick_ns ? (double)p->tick_ns / 1e6 : 1;
}

/* Samples that do not stand for CPU time, but for time asleep, of threads or of processes. */
static bool weighs_time(const struct profile *p)
{
	return p->event && p->tick_ns;
}

static void add_sample(struct tables *t, json_int_t stack, __u64 samples)
{
	if (!samples)
		return;
	append(t, t->stacks, json_integer(stack));
	append(t, t->times, json_real(t->now_ms));
	append(t, t->weights,
	       weighs_time(t->profile) ? json_real((double)samples * tick_ms(t->profile))
				       : json_integer((json_int_t)samples));
	t->now_ms += (double)samples * tick_ms(t->profile);
}

/* Adds samples that are in no function. */
static void add_nowhere(struct tables *t)
{
	const struct profile *p = t->profile;

	if (p->unmatched)
		add_sample(t, add_stack(t, add_function(t, "[unmatched]", -1), -1), p->unmatched);
	if (p->lost)
		add_sample(t, add_stack(t, add_function(t, "[lost]", -1), -1), p->lost);
}

/* A column of @n times @value. */
static json_t *constant(struct tables *t, size_t n, json_t *value)
{
	json_t *column = json_array();

	for (size_t i = 0; i < n; i++)
		t->failed |= json_array_append(column, value) != 0;
	json_decref(value);
	return column;
}

static json_t *sequence(struct tables *t, size_t n)
{
	json_t *column = json_array();

	for (size_t i = 0; i < n; i++)
		append(t, column, json_integer((json_int_t)i));
	return column;
}

/* An object's name is behind those of all functions. */
static json_t *resources(struct tables *t)
{
	const struct profile *p = t->profile;
	json_t *names = json_array();

	for (size_t i = 0; i < p->nobjects; i++) {
		append(t, names, json_integer((json_int_t)json_array_size(t->names)));
		append(t, t->names, jsonname(profile_base_name(p->objects[i].path)));
	}
	return json_pack("{so so so so sI}", "lib", sequence(t, p->nobjects), "name", names, "host",
			 constant(t, p->nobjects, json_null()), "type",
			 constant(t, p->nobjects, json_integer(1)), "length",
			 (json_int_t)p->nobjects);
}

static json_t *function_table(struct tables *t, size_t n)
{
	return json_pack("{so so so sO so so so sI}", "name", sequence(t, n), "isJS",
			 constant(t, n, json_false()), "relevantForJS",
			 constant(t, n, json_false()), "resource", t->resources, "fileName",
			 constant(t, n, json_null()), "lineNumber", constant(t, n, json_null()),
			 "columnNumber", constant(t, n, json_null()), "length", (json_int_t)n);
}

static json_t *frame_table(struct tables *t, size_t n)
{
	return json_pack("{so so sO so so so so so so so sI}", "address",
			 constant(t, n, json_integer(-1)), "inlineDepth",
			 constant(t, n, json_integer(0)), "category", t->categories, "subcategory",
			 constant(t, n, json_integer(0)), "func", sequence(t, n), "nativeSymbol",
			 constant(t, n, json_null()), "innerWindowID",
			 constant(t, n, json_integer(0)), "implementation",
			 constant(t, n, json_null()), "line", constant(t, n, json_null()), "column",
			 constant(t, n, json_null()), "length", (json_int_t)n);
}

static json_t *stack_table(struct tables *t)
{
	size_t n = json_array_size(t->frames);
	json_t *categories = json_array();

	for (size_t i = 0; i < n; i++)
		t->failed |=
			json_array_append(categories,
					  json_array_get(t->categories,
							 (size_t)json_integer_value(json_array_get(
								 t->frames, i)))) != 0;
	return json_pack("{sO sO so so sI}", "frame", t->frames, "prefix", t->prefixes, "category",
			 categories, "subcategory", constant(t, n, json_integer(0)), "length",
			 (json_int_t)n);
}

static bool is_of_thread(const struct tables *t, __u32 node)
{
	return (t->thread ? t->thread[node] : 0) == t->number;
}

/* Each slice of time is a marker, with its samples. */
static json_t *markers(struct tables *t)
{
	const struct profile *p = t->profile;
	json_t *data = json_array(), *from = json_array(), *to = json_array();
	json_int_t name = (json_int_t)json_array_size(t->names);
	size_t at = 0;

	append(t, t->names, json_string("Slice"));
	for (size_t i = 0; i < p->nslices; i++) {
		double ms = (double)p->slice_ns / 1e6;
		json_int_t samples = 0;

		for (; at < p->calls.ntimes && p->calls.time[at].slice == i; at++)
			samples += is_of_thread(t, p->calls.time[at].node)
					   ? (json_int_t)p->calls.time[at].count
					   : 0;
		append(t, data, json_pack("{ss sI}", "type", "Slice", "samples", samples));
		append(t, from, json_real((double)i * ms));
		append(t, to, json_real((double)(i + 1) * ms));
	}
	return json_pack("{so so so so so so sI}", "data", data, "name",
			 constant(t, p->nslices, json_integer(name)), "startTime", from, "endTime",
			 to, "phase", constant(t, p->nslices, json_integer(1)), "category",
			 constant(t, p->nslices, json_integer(OTHER)), "length",
			 (json_int_t)p->nslices);
}

/* The thread of @group, and what is in @t; frees that. NULL: out of memory. */
static json_t *thread_written(struct tables *t, __u32 group)
{
	const struct profile *p = t->profile;
	const struct group *g = group && group < p->ngroups ? &p->groups[group] : NULL;
	size_t n = json_array_size(t->names), samples = json_array_size(t->stacks);
	pid_t pid = g ? g->pid : p->pid, tid = g && g->tid ? g->tid : pid;
	json_t *marks = markers(t), *resource = resources(t), *whole;
	char program[256], id[16];

	profile_program(program, sizeof(program), p);
	snprintf(id, sizeof(id), "%d", pid > 0 ? pid : -(int)group);
	whole = json_pack("{ss si sn si sn s[] so sb ss si s{sO sO sO ss sI} so so so so so s{s[] "
			  "s[] s[] s[] "
			  "si} sO}",
			  "processType", "default", "processStartupTime", 0, "processShutdownTime",
			  "registerTime", 0, "unregisterTime", "pausedRanges", "name",
			  jsonname(g ? g->thread ?: g->command : profile_base_name(program)),
			  "isMainThread", tid == pid, "pid", id, "tid", tid, "samples", "stack",
			  t->stacks, "time", t->times, "weight", t->weights, "weightType",
			  weighs_time(p) ? "tracing-ms" : "samples", "length", (json_int_t)samples,
			  "markers", marks, "stackTable", stack_table(t), "frameTable",
			  frame_table(t, n), "funcTable", function_table(t, n), "resourceTable",
			  resource, "nativeSymbols", "libIndex", "address", "name", "functionSize",
			  "length", 0, "stringArray", t->names);
	if (t->failed) {
		json_decref(whole);
		whole = NULL;
	}
	json_decref(t->names);
	json_decref(t->resources);
	json_decref(t->categories);
	json_decref(t->frames);
	json_decref(t->prefixes);
	json_decref(t->stacks);
	json_decref(t->times);
	json_decref(t->weights);
	return whole;
}

/* The function of @frame. */
static json_int_t function_of_frame(struct tables *t, __u32 frame)
{
	const struct call_tree *calls = &t->profile->calls;
	char name[4096];

	if (!t->function[frame]) {
		stack_frame_name(t->profile, frame, name, sizeof(name));
		t->function[frame] =
			1 + (__u32)add_function(t, name,
						frame < calls->nframes
							? (json_int_t)calls->frame[frame].object
							: -1);
	}
	return t->function[frame] - 1;
}

/* The stack of @frame alone. */
static json_int_t stack_of_frame(struct tables *t, __u32 frame)
{
	if (!t->stack[frame])
		t->stack[frame] = 1 + (__u32)add_stack(t, function_of_frame(t, frame), -1);
	return t->stack[frame] - 1;
}

/* The stack of @node, whose callers come before it: below 0: none, as above whole stacks. */
static json_int_t stack_of_node(struct tables *t, __u32 node)
{
	const struct profile *p = t->profile;

	if (node >= CALL_ROOTS && !stack_is_thread(p, &p->calls, node))
		return (json_int_t)t->stack[stack_frames(p) + node] - 1;
	if (node >= CALL_ROOTS)
		node = p->calls.node[node].parent;
	return node == CALL_WHOLE ? -1 : stack_of_frame(t, (__u32)p->calls.nframes + node);
}

/* Adds samples at @node; those of a root have no frame but its own. */
static void add_at_node(struct tables *t, __u32 node, __u64 samples)
{
	json_int_t stack = node < CALL_ROOTS ? -1 : stack_of_node(t, node);
	__u32 root = call_tree_root(&t->profile->calls, node);

	add_sample(t, stack < 0 ? stack_of_frame(t, stack_frame_root(t->profile, root)) : stack,
		   samples);
}

/* What has times, add_times() has added. */
static int put_stack(void *arg, const struct stack *s)
{
	struct tables *t = arg;

	if (s->at == CALL_NO_NODE && !t->number)
		add_sample(t, stack_of_frame(t, s->frame[0]), s->samples);
	else if (s->at != CALL_NO_NODE && !t->profile->calls.ntimes && is_of_thread(t, s->at))
		add_at_node(t, s->at, s->samples);
	return t->failed ? -ENOMEM : 0;
}

/*
 * Adds the thread's samples of stacks by slice, spread over it. Those of several threads in one
 * stand for more time than it has.
 */
static void add_times(struct tables *t)
{
	const struct call_time *time = t->profile->calls.time;
	double slice_ms = (double)t->profile->slice_ns / 1e6;
	size_t n = t->profile->calls.ntimes;

	for (size_t i = 0, next; i < n; i = next) {
		__u64 sum = 0, before = 0;

		for (next = i; next < n && time[next].slice == time[i].slice; next++)
			sum += is_of_thread(t, time[next].node) ? time[next].count : 0;
		for (size_t k = i; k < next; k++) {
			if (!is_of_thread(t, time[k].node))
				continue;
			t->now_ms = slice_ms * (time[k].slice + (double)before / (double)sum);
			before += time[k].count;
			add_at_node(t, time[k].node, time[k].count);
		}
	}
	if (n)
		t->now_ms = (double)t->profile->nslices * slice_ms;
}

static int add_stacks(struct tables *t)
{
	const struct profile *p = t->profile;
	size_t frames = stack_frames(p);

	memset(t->function, 0, frames * sizeof(*t->function));
	memset(t->stack, 0, (frames + p->calls.n) * sizeof(*t->stack));
	for (__u32 i = CALL_ROOTS; i < p->calls.n; i++) {
		const struct call_node *n = &p->calls.node[i];

		if (is_of_thread(t, i) && !stack_is_thread(p, &p->calls, i))
			t->stack[frames + i] =
				1 + (__u32)add_stack(t, function_of_frame(t, n->frame),
						     stack_of_node(t, n->parent));
	}
	add_times(t);
	return each_stack(p, put_stack, t);
}

static int by_group(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	if (x->place.group != y->place.group)
		return x->place.group < y->place.group ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

/* Adds the functions of the first @n spots, which are of one group. */
static void add_spots(struct tables *t, const struct spot *spot, size_t n)
{
	char name[4096] = "[unknown]";

	for (size_t i = 0, upto; i < n; i = upto) {
		__u64 samples = 0;

		for (upto = i; upto < n && spot[upto].function == spot[i].function; upto++)
			samples += spot[upto].place.count;
		if (spot[i].function)
			profile_function_name(t->profile, spot[i].function, name, sizeof(name));
		add_sample(t, add_stack(t, add_function(t, name, spot[i].place.object), -1),
			   samples);
	}
}

/* Adds a thread for each group, and one for samples that are in none. */
static int add_groups(json_t *threads, const struct profile *p)
{
	struct spots s;
	struct tables t;
	int err = spots_init(&s, p, NULL);

	if (!err && s.n)
		qsort(s.spot, s.n, sizeof(*s.spot), by_group);
	for (size_t i = 0, n; !err && i < s.n; i += n) {
		for (n = 1; i + n < s.n && s.spot[i + n].place.group == s.spot[i].place.group;)
			n++;
		tables_init(&t, p);
		add_spots(&t, s.spot + i, n);
		if (json_array_append_new(threads, thread_written(&t, s.spot[i].place.group)))
			err = -ENOMEM;
	}
	spots_fini(&s);
	if (err || (!p->unmatched && !p->lost && s.n))
		return err;
	tables_init(&t, p);
	add_nowhere(&t);
	return json_array_append_new(threads, thread_written(&t, 0)) ? -ENOMEM : 0;
}

/* The group of the thread that is called @name, with its tid in parentheses; 0: none. */
static __u32 group_of_thread(const struct profile *p, const char *name)
{
	const char *id = strrchr(name, '(');
	pid_t tid = id ? atoi(id + 1) : 0;

	for (__u32 i = 1; tid && i < p->ngroups; i++) {
		const struct group *g = &p->groups[i];

		if (g->tid == tid && g->thread && !strncmp(g->thread, name, strlen(g->thread)))
			return i;
	}
	return 0;
}

/* Numbers the threads above nodes; of[n] is the group of number n. Returns how many there are. */
static __u32 number_threads(const struct profile *p, __u32 *thread, __u32 *of)
{
	const struct call_tree *t = &p->calls;
	char name[4096];
	__u32 n = 0;

	for (__u32 i = CALL_ROOTS, k; i < t->n; i++) {
		thread[i] = thread[t->node[i].parent];
		if (!stack_is_thread(p, &p->calls, i))
			continue;
		call_frame_name(p, t->node[i].frame, name, sizeof(name));
		of[0] = group_of_thread(p, name);
		for (k = n; of[k] != of[0]; k--)
			;
		thread[i] = k ?: ++n;
		of[thread[i]] = of[0];
	}
	of[0] = 0;
	return n;
}

/* Adds a thread for each that stacks distinguish, and one for what is of none. */
static int add_threads(json_t *threads, const struct profile *p)
{
	size_t frames = stack_frames(p);
	__cleanup(freep) __u32 *thread = calloc(p->calls.n + 1, sizeof(*thread));
	__cleanup(freep) __u32 *of = calloc(p->calls.n + 2, sizeof(*of));
	__cleanup(freep) __u32 *function = calloc(frames + 1, sizeof(*function));
	__cleanup(freep) __u32 *stack = calloc(frames + p->calls.n + 1, sizeof(*stack));
	size_t samples;
	struct tables t;
	json_t *whole;
	__u32 n;
	int err = 0;

	if (!thread || !of || !function || !stack)
		return -ENOMEM;
	if (!has_stacks(p))
		return add_groups(threads, p);
	n = number_threads(p, thread, of);
	for (__u32 i = 0; i <= n && !err; i++) {
		tables_init(&t, p);
		t.thread = thread;
		t.number = i;
		t.function = function;
		t.stack = stack;
		err = add_stacks(&t);
		samples = json_array_size(t.stacks);
		whole = thread_written(&t, of[i]);
		if (!samples && n)
			json_decref(whole);
		else if (json_array_append_new(threads, whole))
			err = -ENOMEM;
	}
	return err;
}

static json_t *libraries(const struct profile *p)
{
	json_t *all = json_array();

	for (size_t i = 0; i < p->nobjects; i++) {
		const struct object *o = &p->objects[i];
		const char *name = profile_base_name(o->path);

		json_array_append_new(
			all,
			json_pack("{ss so so so so ss so}", "arch", p->host.architecture, "name",
				  jsonname(name), "path", jsonname(o->path), "debugName",
				  jsonname(name), "debugPath", jsonname(o->path), "breakpadId", "",
				  "codeId", *o->build_id ? json_string(o->build_id) : json_null()));
	}
	return all;
}

static json_t *meta(const struct profile *p)
{
	char quantity[96];

	return json_pack(
		"{sf sf si so si si si sb ss ss s[{ss ss s[s]}{ss ss s[s]}{ss ss s[s]}] "
		"s[{ss s[ss] "
		"s[{ss ss ss}]}] s[{ss s[{ss ss ss}]}]}",
		"interval", tick_ms(p), "startTime", (double)p->started * 1e3, "processType", 0,
		"product", jsonname(p->command), "stackwalk", has_stacks(p), "version",
		GECKO_VERSION, "preprocessedProfileVersion", VERSION, "symbolicated", 1,
		"importedFrom", "profilctl " PROFIL_VERSION, "platform", "Linux", "categories",
		"name", "Other", "color", "grey", "subcategories", "Other", "name", "User", "color",
		"yellow", "subcategories", "Other", "name", "Kernel", "color", "orange",
		"subcategories", "Other", "markerSchema", "name", "Slice", "display",
		"timeline-overview", "marker-chart", "data", "key", "samples", "label", "Samples",
		"format", "integer", "extra", "label", "Samples", "entries", "label", "Weight",
		"format", "string", "value", quantity_of_sample(quantity, sizeof(quantity), p));
}

int firefox_write(FILE *out, const struct profile *p)
{
	json_t *threads = json_array();
	int err = add_threads(threads, p);
	json_auto_t *root =
		json_pack("{so so so}", "meta", meta(p), "libs", libraries(p), "threads", threads);

	if (err || !root)
		return err ? err : -ENOMEM;
	if (json_dumpf(root, out, JSON_COMPACT | JSON_ENSURE_ASCII) < 0)
		return -EIO;
	fputc('\n', out);
	return 0;
}
