/* text_stacks.c - call trees as text, and how stacks end */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "profile/call_graph.h"
#include "profile/each_stack.h"
#include "profile/confidence.h"
#include "analysis/find_function.h"
#include "profile/stack_ends.h"
#include "symbols/short_name.h"
#include "base/sanitize.h"
#include "text_stacks.h"

#define COLUMNS 80
#define NUMBERS_COLUMNS 31
#define FILE_COLUMNS 24
#define DEPTH_MAX 512

/* The remedy of cut @i; NULL if none, or if the next cut has the same. */
static const char *cure_of(const struct profile *p, const struct stack_ends *e, size_t i)
{
	const struct stack_cut *cut = &e->cut[i], *next = cut + 1;
	const char *cure = stack_end_cure(cut->end, &p->objects[cut->object]);

	if (cure && i + 1 < e->nshown &&
	    stack_end_cure(next->end, &p->objects[next->object]) == cure)
		return NULL;
	return cure;
}

static void cut_write(FILE *out, const struct profile *p, const struct stack_ends *e, size_t i)
{
	const struct stack_cut *cut = &e->cut[i];
	const char *cure = cure_of(p, e, i), *why = stack_end_text(cut->end);
	char clean_name[256], name[256];
	size_t room = COLUMNS - 18 - strlen(why); /* "  100.00 % cut in NAME: WHY" */

	sanitize(clean_name, sizeof(clean_name), profile_base_name(p->objects[cut->object].path));
	fit_name(name, sizeof(name), clean_name, room);
	fprintf(out, "  %.2f %% cut in %s: %s\n", stack_ends_percent(e, cut->samples), name, why);
	if (cure)
		fprintf(out, "    %s\n", cure);
}

void text_stacks(FILE *out, const struct profile *p)
{
	struct stack_ends e;

	if (has_stacks(p) && !stack_ends_init(&e, p)) {
		fprintf(out, "%.2f %% of the stacks %s\n",
			stack_ends_percent(&e, e.ended[CALL_WHOLE]), stack_whole_text(p));
		for (size_t i = 0; i < e.nshown; i++)
			cut_write(out, p, &e, i);
		if (e.without)
			fprintf(out, "  %llu samples have no stack\n", e.without);
		if (p->node_full)
			fprintf(out,
				"  %llu stacks lack their innermost frames: no room for more call "
				"paths\n    profile for a shorter time, or fewer processes\n",
				p->node_full);
		stack_ends_fini(&e);
	}
}

/* Says for each frame whether @name matches it. Returns as matches_find(). */
static int find_frames(bool **out, const struct profile *p, const char *name)
{
	__cleanup(freep) struct function *functions = NULL;
	__cleanup(freep) bool *wanted = NULL;
	struct profile frames = *p;
	struct matches m;
	int err;

	wanted = calloc(p->calls.nframes + 1, sizeof(*wanted));
	functions = calloc(p->calls.nframes + 1, sizeof(*functions));
	if (!wanted || !functions)
		return -ENOMEM;
	for (size_t i = 0; i < p->calls.nframes; i++) {
		const struct call_frame *f = &p->calls.frame[i];

		functions[i] = (struct function){ .name = f->name,
						  .offset = f->offset,
						  .object = f->object };
	}
	frames.functions = functions;
	frames.nfunctions = p->calls.nframes;
	err = matches_find(&m, &frames, name);
	for (size_t i = 0; !err && i < m.n; i++)
		wanted[m.function[i] - functions] = true;
	matches_fini(&m);
	if (!err)
		*out = steal(wanted);
	return err;
}

/* Says whether @frame is of @of, which a compiler at run time can have made more than once. */
static bool is_instance(const struct profile *p, const struct call_frame *frame,
			const struct function *of)
{
	return of->name && frame->name && p->objects[of->object].kind == OBJECT_ANON &&
	       frame->object == of->object && !strcmp(of->name, frame->name);
}

/* The same for one function; inlined functions have offset 0 and do not match. */
static int find_frame(bool **out, const struct profile *p, const struct function *of)
{
	bool *wanted = calloc(p->calls.nframes + 1, sizeof(*wanted));

	if (!wanted)
		return -ENOMEM;
	for (size_t i = 0; i < p->calls.nframes; i++) {
		const struct call_frame *f = &p->calls.frame[i];

		wanted[i] = (f->object == of->object && f->offset == of->offset) ||
			    is_instance(p, f, of);
	}
	*out = wanted;
	return 0;
}

/* The name of a frame; without one, that of its file and the offset. */
static const char *tree_name(const struct profile *p, size_t frame, char *out, size_t bytes)
{
	stack_frame_name(p, frame, out, bytes);
	return frame < p->calls.nframes && !p->calls.frame[frame].name ? profile_base_name(out)
								       : out;
}

/* Says whether another root has the name of @n. */
static bool shares_name(const struct profile *p, const struct call_graph *g,
			const struct call_graph_node *n)
{
	const struct call_frame *frame = p->calls.frame;
	const char *name = n->frame < p->calls.nframes ? frame[n->frame].name : NULL;

	for (__u32 at = g->node[0].child; name && at != CALL_GRAPH_NONE; at = g->node[at].next) {
		__u32 other = g->node[at].frame;

		if (other != n->frame && other < p->calls.nframes && frame[other].name &&
		    !strcmp(frame[other].name, name))
			return true;
	}
	return false;
}

/*
 * Writes " (FILE)" if @n is a root and others have its name, as the _start of several programs; ""
 * if not. Returns @out.
 */
static const char *root_file(char *out, size_t bytes, const struct profile *p,
			     const struct call_graph *g, const struct call_graph_node *n)
{
	char clean[256];

	*out = '\0';
	if (n->parent || !shares_name(p, g, n))
		return out;
	sanitize(clean, sizeof(clean), profile_base_name(stack_frame_path(p, n->frame)));
	snprintf(out, bytes, " (%s)", fit_text(clean, sizeof(clean), FILE_COLUMNS));
	return out;
}

/* Half of the columns that the numbers leave is for the indent, half for the name. */
static void node_write(FILE *out, const struct profile *p, const struct call_graph *g,
		       const struct call_graph_node *n, const struct text_tree *t, size_t depth)
{
	struct interval i = confidence_interval(n->total, p->total);
	size_t columns = t->columns > COLUMNS ? t->columns : COLUMNS;
	size_t room = columns - NUMBERS_COLUMNS, most = room / 2;
	size_t indent = depth < most ? depth : most;
	char text[4096], fitting[4096], clean[4096], file[300], level[32] = "", interval[32] = "",
								self[32] = "";
	const char *name = tree_name(p, n->frame, text, sizeof(text));

	if (!profile_is_off_cpu(p))
		snprintf(interval, sizeof(interval), "%5.1f-%5.1f", i.low, i.high);
	if (depth > most)
		snprintf(level, sizeof(level), "(%zu) ", depth);
	root_file(file, sizeof(file), p, g, n);
	if (!t->full_names)
		name = fit_name(fitting, sizeof(fitting), name,
				room - indent - strlen(level) - columns_of(file));
	if (!t->callers && !t->of && !t->wakers)
		snprintf(self, sizeof(self), " %6.2f %%", profile_percent(p, n->self));
	fprintf(out, "%6.2f %% %11s%s  %*s%s%s%s\n", profile_percent(p, n->total), interval, self,
		(int)indent, "", level, sanitize(clean, sizeof(clean), name), file);
}

/* Writes the nodes with enough samples; with @hottest, only nodes that are in it. */
static void graph_write(FILE *out, const struct profile *p, const struct call_graph *g,
			const struct text_tree *t, const bool *hottest)
{
	__u32 at = g->node[0].child;
	size_t depth = 0;

	while (at != CALL_GRAPH_NONE) {
		const struct call_graph_node *n = &g->node[at];
		bool shown = profile_percent(p, n->total) >= t->least_percent &&
			     (!hottest || hottest[at]);

		if (shown)
			node_write(out, p, g, n, t, depth);
		at = call_graph_next(g, at, shown && depth < DEPTH_MAX, &depth);
	}
}

int text_tree(FILE *out, const struct profile *p, const struct text_tree *t)
{
	const char *name = t->callers ?: t->callees ?: t->wakers;
	bool callers = t->callers || t->of;
	__cleanup(freep) bool *wanted = NULL, *hottest = NULL;
	struct call_graph g;
	int err = has_stacks(p) ? 0 : -ENODATA;

	if (!err && t->of)
		err = find_frame(&wanted, p, t->of);
	else if (!err && name)
		err = find_frames(&wanted, p, name);
	err = err
		      ?: (t->wakers    ? call_graph_wakers(&g, &p->calls, wanted)
			  : callers    ? call_graph_callers(&g, &p->calls, wanted)
			  : t->callees ? call_graph_callees(&g, &p->calls, wanted)
				       : call_graph_init(&g, &p->calls));
	if (err)
		return err;
	if (t->rows)
		err = call_graph_largest(&hottest, &g, t->rows);
	if (err) {
		call_graph_fini(&g);
		return err;
	}
	callers |= t->wakers != NULL;
	fprintf(out, "\n incl. %%  %10s%s  %s, and below it %s\n",
		profile_is_off_cpu(p) ? "" : "95 % of it", callers ? "" : "    self %",
		t->wakers ? "function that wakes them up" : "function",
		callers ? "its callers" : "what it calls");
	graph_write(out, p, &g, t, hottest);
	fputc('\n', out);
	text_stacks(out, p);
	call_graph_fini(&g);
	return 0;
}
