/* callgrind.c - callgrind's format, for callgrind_annotate and KCachegrind */
/*
 * KCachegrind computes a function's inclusive cost as its own cost plus that of the calls it makes,
 * callgrind_annotate as the cost of the calls to it, if there are any. For both to count each
 * sample once, a stack is reduced to a path on which each function occurs once, at its innermost
 * frame, below ALL, which stands for the start of the threads. Then each function but ALL is called
 * once, and makes one call or has the sample itself. Frames that a recursion removes are skipped,
 * as if the outer function had called the inner one directly.
 */
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <stdlib.h>

#include "format.h"
#include "analysis/sample_location.h"
#include "profile/stack_ends.h"
#include "profile/profile.h"
#include "base/cleanup.h"
#include "profile/each_stack.h"
#include "symbols/lines_store.h"
#include "base/grow.h"
#include "base/utf8.h"

#define UNKNOWN "???"
#define ALL "[threads]"
/* Edges are merged when their number has doubled since the last time, and is at least this. */
#define EDGES_MIN 16384

/* Samples of a call from @caller at @object and @offset; if @callee is @caller, its own cost. */
struct edge {
	__u32 caller;
	__u32 callee;
	__u32 object;
	int line;
	bool inlined; /* the call is to a function inlined at @offset, so its own line is unknown */
	__u64 offset;
	__u64 samples;
};

struct edges {
	const struct profile *profile;
	struct edge *edge;
	size_t n;
	size_t merged; /* edges after the last merge() */
	__u32 *same;   /* of each frame: the first frame that is the same function to readers */
	__u32 *seen;   /* of these: number of the last stack that contained one of them */
	__u32 stacks;
	const char **file; /* of each frame */
};

static int by_caller(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	if (x->callee != y->callee)
		return x->callee < y->callee ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void merge(struct edges *e)
{
	size_t n = 0;

	if (e->n)
		qsort(e->edge, e->n, sizeof(*e->edge), by_caller);
	for (size_t i = 0; i < e->n; i++) {
		if (n && !by_caller(&e->edge[n - 1], &e->edge[i]))
			e->edge[n - 1].samples += e->edge[i].samples;
		else
			e->edge[n++] = e->edge[i];
	}
	e->n = e->merged = n;
}

static int add(struct edges *e, const struct edge *edge)
{
	struct edge *all = grow(e->edge, e->n, sizeof(*all));

	if (!all)
		return -ENOMEM;
	e->edge = all;
	e->edge[e->n++] = *edge;
	return 0;
}

/* The frame ALL, after all others. */
static __u32 all_of(const struct edges *e)
{
	return (__u32)stack_frames(e->profile);
}

static int add_stack(void *arg, const struct stack *s)
{
	struct edges *e = arg;
	const struct call_tree *t = &e->profile->calls;
	__u32 callee = s->frame[0];
	int err = 0;

	e->stacks++;
	for (size_t i = 0; !err && i < s->n; i++) {
		const struct call_node *n = s->node[i] >= CALL_ROOTS ? &t->node[s->node[i]] : NULL;
		__u32 *seen = &e->seen[e->same[s->frame[i]]];
		struct edge edge = { .caller = s->frame[i],
				     .callee = callee,
				     .object = n ? n->object : 0,
				     .inlined = n && i && call_tree_is_inlined(t, s->node[i - 1]),
				     .offset = n ? n->offset : 0,
				     .samples = s->samples };

		if (*seen == e->stacks)
			continue;
		*seen = e->stacks;
		callee = s->frame[i];
		err = add(e, &edge);
	}
	if (!err)
		err = add(e, &(struct edge){ .caller = all_of(e),
					     .callee = callee,
					     .samples = s->samples });
	if (e->n > 2 * e->merged + EDGES_MIN)
		merge(e);
	return err;
}

/* What readers know of a frame's function. */
struct identity {
	const char *path;
	const char *name; /* NULL: unlike any other */
	__u32 frame;
};

static int by_identity(const void *a, const void *b)
{
	const struct identity *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	if (!order)
		order = x->name && y->name ? strcmp(x->name, y->name) : !y->name - !x->name;
	return order ? order : (x->frame > y->frame) - (x->frame < y->frame);
}

static bool is_same(const struct identity *a, const struct identity *b)
{
	return a->name && b->name && !strcmp(a->name, b->name) && !strcmp(a->path, b->path);
}

/* Static functions of several units can have one name. */
static int find_same(struct edges *e)
{
	const struct call_tree *t = &e->profile->calls;
	__cleanup(freep) struct identity *all = calloc(t->nframes + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (__u32 i = 0; i <= all_of(e); i++)
		e->same[i] = i;
	for (__u32 i = 0; i < t->nframes; i++)
		all[i] = (struct identity){ stack_frame_path(e->profile, i), t->frame[i].name, i };
	qsort(all, t->nframes, sizeof(*all), by_identity);
	for (size_t i = 1; i < t->nframes; i++) {
		if (is_same(&all[i - 1], &all[i]))
			e->same[all[i].frame] = e->same[all[i - 1].frame];
	}
	return 0;
}

/*
 * Writes a line: @key, then @s with blanks for control characters and U+FFFD for what is not UTF-8.
 */
static void callgrind_name(FILE *out, const char *key, const char *s)
{
	fputs(key, out);
	while (*s) {
		size_t n = utf8_bytes(s);

		if (!n)
			fputs("\357\277\275", out);
		else if (utf8_is_control(s, n))
			fputc(' ', out);
		else
			fwrite(s, 1, n, out);
		s += n ? n : 1;
	}
	fputc('\n', out);
}

static void function(FILE *out, const struct edges *e, __u32 frame, const char *const *keys)
{
	bool all = frame == all_of(e);
	const char *path = all ? "" : stack_frame_path(e->profile, frame);
	char buf[4096];

	callgrind_name(out, keys[0], *path ? path : UNKNOWN);
	callgrind_name(out, keys[1], e->file[frame] ? e->file[frame] : UNKNOWN);
	callgrind_name(out, keys[2],
		       all ? ALL : stack_frame_name(e->profile, frame, buf, sizeof(buf)));
}

static void find_lines(struct edges *e, struct lines_store *lines)
{
	for (size_t i = 0; i < e->n; i++) {
		struct edge *edge = &e->edge[i];
		bool own = edge->caller == edge->callee;
		const char *file;

		if (edge->caller >= e->profile->calls.nframes || edge->inlined ||
		    !lines_find(lines_store_find(lines, edge->object), edge->offset - !own, &file,
				&edge->line))
			edge->line = 0;
		else if (!e->file[edge->caller])
			e->file[edge->caller] = file;
	}
}

static void edges_write(FILE *out, const struct edges *e)
{
	static const char *const caller[] = { "ob=", "fl=", "fn=" };
	static const char *const callee[] = { "cob=", "cfi=", "cfn=" };

	for (size_t i = 0; i < e->n; i++) {
		const struct edge *edge = &e->edge[i];
		const struct object *o = &e->profile->objects[edge->object];

		if (!i || edge->caller != edge[-1].caller)
			function(out, e, edge->caller, caller);
		if (edge->callee != edge->caller) {
			function(out, e, edge->callee, callee);
			fputs("calls=1 0x0 0\n", out);
		}
		fprintf(out, "0x%llx %d %llu\n", edge->offset ? object_address(o, edge->offset) : 0,
			edge->line, edge->samples);
	}
}

/* Writes the functions and calls of @p, which has stacks. Returns 0 or -ENOMEM. */
static int callgrind_calls(FILE *out, const struct profile *p, struct lines_store *lines)
{
	struct edges e = { .profile = p,
			   .same = calloc(stack_frames(p) + 1, sizeof(__u32)),
			   .seen = calloc(stack_frames(p) + 1, sizeof(__u32)),
			   .file = calloc(stack_frames(p) + 1, sizeof(char *)) };
	int err = (e.same && e.seen && e.file ? find_same(&e) : -ENOMEM)
			  ?: each_stack(p, add_stack, &e);

	if (!err) {
		merge(&e);
		find_lines(&e, lines);
		edges_write(out, &e);
	}
	free(e.same);
	free(e.seen);
	free(e.file);
	free(e.edge);
	return err;
}

static bool is_same_function(const struct spot *a, const struct spot *b)
{
	return a->function == b->function && a->place.object == b->place.object;
}

/* The file of the function at spot @i, the first of its spots: that of code not inlined into it. */
static const char *file_of(const struct spots *s, size_t i)
{
	for (size_t k = i; k < s->n && is_same_function(&s->spot[k], &s->spot[i]); k++) {
		if (s->spot[k].file && !s->spot[k].inlined)
			return s->spot[k].file;
	}
	return UNKNOWN;
}

static void spot_function(FILE *out, const struct profile *p, const struct spot *spot,
			  const char *file)
{
	char buf[4096];

	callgrind_name(out, "ob=", p->objects[spot->place.object].path);
	callgrind_name(out, "fl=", file);
	callgrind_name(out, "fn=",
		       spot->function ? profile_function_name(p, spot->function, buf, sizeof(buf))
				      : UNKNOWN);
}

static void cost(FILE *out, const struct profile *p, const struct spot *spot)
{
	const struct object *o = &p->objects[spot->place.object];

	fprintf(out, "0x%llx %d %llu\n", object_address(o, spot->place.offset),
		spot->file ? spot->line : 0, spot->place.count);
}

static void spots_write(FILE *out, const struct profile *p, const struct spots *s)
{
	const char *file = UNKNOWN;

	for (size_t i = 0; i < s->n; i++) {
		const struct spot *spot = &s->spot[i];
		const char *now = spot->file ? spot->file : UNKNOWN;

		if (!i || !is_same_function(spot, &spot[-1])) {
			file = file_of(s, i);
			spot_function(out, p, spot, file);
		}
		if (strcmp(now, file) != 0)
			callgrind_name(out, "fi=", now);
		file = now;
		cost(out, p, spot);
	}
}

static void nowhere(FILE *out, const char *what, __u64 samples)
{
	if (samples)
		fprintf(out, "ob=" UNKNOWN "\nfl=" UNKNOWN "\nfn=%s\n0x0 0 %llu\n", what, samples);
}

int callgrind_write(FILE *out, const struct profile *p)
{
	bool calls = has_stacks(p);
	char ends[2048];
	__cleanup(lines_store_fini) struct lines_store lines = { .profile = p };
	struct spots s = { 0 };
	int err = calls ? 0 : spots_init(&s, p, &lines);

	if (!err) {
		fputs("# callgrind format\nversion: 1\ncreator: profilctl " PROFIL_VERSION "\n",
		      out);
		fprintf(out, "pid: %d\n", (int)p->pid);
		callgrind_name(out, "cmd: ", p->command);
		if (calls)
			callgrind_name(out,
				       "desc: Stacks: ", stack_ends_summary(ends, sizeof(ends), p));
		fputs("positions: instr line\nevents: Samples\n", out);
		fprintf(out, "summary: %llu\n\n", p->total);
		if (calls) {
			err = callgrind_calls(out, p, &lines);
		} else {
			spots_write(out, p, &s);
			nowhere(out, "[unmatched]", p->unmatched);
			nowhere(out, "[lost]", p->lost);
		}
		fprintf(out, "\ntotals: %llu\n", p->total);
	}
	spots_fini(&s);
	return err;
}
