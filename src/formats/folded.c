/* folded.c - folded stacks, the input of flame graph tools */
/*
 * The text of all stacks can be far larger than the profile. Stacks are therefore merged in a tree
 * of names, of which each line is written in turn.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "format.h"
#include "analysis/sample_location.h"
#include "profile/stack_ends.h"
#include "base/grow.h"
#include "profile/profile.h"
#include "profile/each_stack.h"
#include "base/utf8.h"

struct name_tree {
	struct call_tree calls; /* below CALL_WHOLE; a node's offset is the index of its name */
	char **name;		/* in alphabetical order */
	size_t names;
	__u32 *of_frame; /* index in @name */
};

/* A frame of the profile, before equal names are merged. */
struct named {
	char *name;
	size_t frame;
};

/*
 * Semicolons separate frames, newlines stacks: a copy of @name without either, in UTF-8. The caller
 * frees it. NULL: out of memory.
 */
static char *folded_name(const char *name)
{
	char *copy = utf8_clean(name);

	for (char *c = copy; c && *c; c++)
		*c = *c == ';' ? ':' : *c;
	return copy;
}

static void tree_fini(struct name_tree *t)
{
	call_tree_fini(&t->calls);
	for (size_t i = 0; i < t->names; i++)
		free(t->name[i]);
	free(t->name);
	free(t->of_frame);
}

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int find_names(struct name_tree *t, const struct profile *p)
{
	size_t n = stack_frames(p);
	__cleanup(freep) struct named *named = calloc(n, sizeof(*named));
	char text[4096];
	int err = 0;

	t->name = calloc(n, sizeof(*t->name));
	t->of_frame = calloc(n, sizeof(*t->of_frame));
	if (!named || !t->name || !t->of_frame)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		named[i] = (struct named){ folded_name(stack_frame_name(p, i, text, sizeof(text))),
					   i };
		err = named[i].name ? err : -ENOMEM;
	}
	if (!err)
		qsort(named, n, sizeof(*named), by_name);
	for (size_t i = 0; i < n; i++) {
		if (err || (i && !strcmp(named[i].name, t->name[t->names - 1])))
			free(named[i].name);
		else
			t->name[t->names++] = named[i].name;
		t->of_frame[named[i].frame] = (__u32)t->names - 1;
	}
	return err;
}

static int add_stack(void *arg, const struct stack *s)
{
	struct name_tree *t = arg;
	__u32 at = CALL_WHOLE;
	int err = 0;

	for (size_t i = s->n; !err && i-- > 0;)
		err = call_tree_add(&t->calls, at, 0, t->of_frame[s->frame[i]], &at);
	if (!err)
		t->calls.node[at].count += s->samples;
	return err;
}

/* The last name first. */
static int by_offset(const void *a, const void *b)
{
	const struct call_node *x = *(const struct call_node *const *)a,
			       *y = *(const struct call_node *const *)b;

	return x->offset < y->offset ? 1 : x->offset > y->offset ? -1 : 0;
}

/* Makes lists of children in alphabetical order: @child is the first, @next the next; 0: none. */
static int order(const struct call_tree *t, __u32 *child, __u32 *next)
{
	size_t n = t->n > CALL_ROOTS ? t->n - CALL_ROOTS : 0;
	__cleanup(freep) const struct call_node **node = calloc(n + 1, sizeof(const void *));

	if (!node)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		node[i] = &t->node[CALL_ROOTS + i];
	qsort(node, n, sizeof(const void *), by_offset);
	for (size_t i = 0; i < n; i++) {
		__u32 at = (__u32)(node[i] - t->node);

		next[at] = child[node[i]->parent];
		child[node[i]->parent] = at;
	}
	return 0;
}

/* @path has room for all nodes. */
static void line_write(FILE *out, const struct name_tree *t, __u32 at, __u32 *path,
		       const char *program)
{
	const struct call_node *node = t->calls.node;
	__u64 samples = node[at].count;
	size_t n = 0;

	for (; at != CALL_WHOLE; at = node[at].parent)
		path[n++] = at;
	fputs(program, out);
	while (n-- > 0) {
		fputc(';', out);
		fputs(t->name[node[path[n]].offset], out);
	}
	fprintf(out, " %llu\n", samples);
}

static int tree_write(FILE *out, const struct name_tree *t, const char *program)
{
	__cleanup(freep) __u32 *child = calloc(t->calls.n + 1, sizeof(*child));
	__cleanup(freep) __u32 *next = calloc(t->calls.n + 1, sizeof(*next));
	__cleanup(freep) __u32 *path = calloc(t->calls.n + 1, sizeof(*path));
	int err = child && next && path ? order(&t->calls, child, next) : -ENOMEM;
	__u32 at = err ? 0 : child[CALL_WHOLE];

	while (at) {
		if (t->calls.node[at].count)
			line_write(out, t, at, path, program);
		if (child[at]) {
			at = child[at];
			continue;
		}
		while (at != CALL_WHOLE && !next[at])
			at = t->calls.node[at].parent;
		at = next[at];
	}
	return err;
}

/*
 * Writes a line for all stacks of @p with the same names, in alphabetical order, each beginning
 * with
 * @program. Returns 0 or -ENOMEM.
 */
static int folded_stacks(FILE *out, const struct profile *p, const char *program)
{
	struct name_tree t = { 0 };
	int err = find_names(&t, p) ?: each_stack(p, add_stack, &t) ?: tree_write(out, &t, program);

	tree_fini(&t);
	return err;
}

/* The names of a function, its object and its program, separated by semicolons. */
struct line {
	char *frames;
	__u64 samples;
};

/* Different functions can have the same names: their lines are added up before they are written. */
struct folded {
	const struct profile *profile;
	char program[256];
	struct line *line;
	size_t n;
};

/* Adds a line; takes ownership of @frames. */
static int add(struct folded *f, char *frames, __u64 samples)
{
	struct line *grown = grow(f->line, f->n, sizeof(*grown));

	if (!grown) {
		free(frames);
		return -ENOMEM;
	}
	f->line = grown;
	f->line[f->n++] = (struct line){ frames, samples };
	return 0;
}

static int add_function(struct folded *f, const char *command, const char *object, const char *name,
			__u64 samples)
{
	__cleanup(freep) char *program = folded_name(profile_base_name(command));
	__cleanup(freep) char *file = folded_name(object ? profile_base_name(object) : "");
	__cleanup(freep) char *function = folded_name(name);
	char *frames;

	if (!samples)
		return 0;
	if (!program || !file || !function ||
	    asprintf(&frames, "%s;%s%s%s", program, file, object ? ";" : "", function) < 0)
		return -ENOMEM;
	return add(f, frames, samples);
}

/* Adds a line for each spot. */
static int add_spots(struct folded *f, const struct spots *s)
{
	const struct profile *p = f->profile;
	int err = 0;

	for (size_t i = 0; i < s->n && !err; i++) {
		const struct spot *spot = &s->spot[i];
		const struct function *function = spot->function;
		__u32 group = spot->place.group;
		char name[4096] = "[unknown]";

		if (function)
			profile_function_name(p, function, name, sizeof(name));
		err = add_function(f, group ? p->groups[group].command : f->program,
				   function ? p->objects[function->object].path : NULL, name,
				   spot->place.count);
	}
	return err;
}

static int add_functions(struct folded *f)
{
	const struct profile *p = f->profile;
	struct spots s;
	int err = spots_init(&s, p, NULL)
		      ?: add_spots(f, &s)
		      ?: add_function(f, f->program, NULL, "[unmatched]", p->unmatched)
		      ?: add_function(f, f->program, NULL, "[lost]", p->lost);

	spots_fini(&s);
	return err;
}

static int by_frames(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return strcmp(x->frames, y->frames);
}

static void lines_write(FILE *out, const struct line *line, size_t n)
{
	size_t upto;

	for (size_t i = 0; i < n; i = upto) {
		__u64 samples = 0;

		for (upto = i; upto < n && !by_frames(&line[i], &line[upto]); upto++)
			samples += line[upto].samples;
		fprintf(out, "%s %llu\n", line[i].frames, samples);
	}
}

static int functions_write(FILE *out, struct folded *f)
{
	int err = add_functions(f);

	if (!err && f->n) {
		qsort(f->line, f->n, sizeof(*f->line), by_frames);
		lines_write(out, f->line, f->n);
	}
	for (size_t i = 0; i < f->n; i++)
		free(f->line[i].frames);
	free(f->line);
	return err;
}

int folded_write(FILE *out, const struct profile *p)
{
	struct folded f = { .profile = p };
	__cleanup(freep) char *program = NULL;

	if (!*profile_program(f.program, sizeof(f.program), p))
		strcpy(f.program, "[unknown]");
	program = folded_name(profile_base_name(f.program));
	if (!program)
		return -ENOMEM;
	return has_stacks(p) ? folded_stacks(out, p, program) : functions_write(out, &f);
}
