/* markdown.c - a profile as Markdown, for issue trackers and for programs that read text */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/sanitize.h"

#include "analysis/function_rows.h"
#include "format.h"
#include "profile/call_graph.h"
#include "profile/confidence.h"
#include "profile/each_stack.h"
#include "profile/stack_ends.h"
#include "quantity.h"
#include "shortcomings.h"

/* What a reader takes in at once, and a comment of an issue holds. */
#define FUNCTIONS_MAX 20
#define NODES_MAX 80
#define NODE_PERCENT_MIN 1.0
#define NAME_MAX_BYTES 160
#define DEPTH_MAX 512

/* A name without what ends a code span or a block, cut to a length that can be read. */
static const char *plain(char *out, size_t bytes, const char *name)
{
	sanitize(out, bytes < NAME_MAX_BYTES ? bytes : NAME_MAX_BYTES, name);
	for (char *s = out; *s; s++)
		*s = *s == '`' ? '\'' : *s;
	return out;
}

/* The same as a code span in a cell of a table, where a bar ends the cell even in a code span. */
static void cell(FILE *out, const char *name)
{
	char text[4096];

	fputs(" `", out);
	for (const char *s = plain(text, sizeof(text), name); *s; s++)
		fprintf(out, *s == '|' ? "\\%c" : "%c", *s);
	fputs("` |", out);
}

static void head(FILE *out, const struct profile *p)
{
	char text[4096], command[4096], when[64];
	struct tm tm;

	fprintf(out, "# Profile of `%s`\n\n", plain(command, sizeof(command), p->command));
	fprintf(out, "- %llu samples: %s\n", p->total, quantity_of_all(text, sizeof(text), p));
	fprintf(out, "- %s; %.2f s\n", quantity_of_sample(text, sizeof(text), p),
		(double)p->duration_ns / 1e9);
	if (*quantity_of_processes(text, sizeof(text), p))
		fprintf(out, "- %s\n", text);
	if (*p->host.name)
		fprintf(out, "- on `%s`, Linux %s %s\n", plain(text, sizeof(text), p->host.name),
			p->host.kernel, p->host.architecture);
	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&p->started, &tm));
	fprintf(out, "- from %s\n", when);
}

static void row_write(FILE *out, const struct profile *p, const struct function_row *row)
{
	struct interval i = confidence_interval(row->samples, p->total);
	char name[4096];

	fprintf(out, "| %.2f | ", profile_percent(p, row->samples));
	if (!profile_is_off_cpu(p))
		fprintf(out, "%.1f–%.1f | ", i.low, i.high);
	fprintf(out, "%llu |", row->samples);
	cell(out, profile_function_name(p, row->function, name, sizeof(name)));
	cell(out, profile_base_name(p->objects[row->function->object].path));
	fputc('\n', out);
}

static int functions_write(FILE *out, const struct profile *p)
{
	bool interval = !profile_is_off_cpu(p);
	struct function_rows rows;
	__u64 rest = p->binned;
	int err = function_rows_init(&rows, p);

	if (!err)
		fprintf(out,
			"\n## Functions by samples in themselves\n\n| %% |%s samples | function | "
			"object |\n"
			"|---:|%s---:|---|---|\n",
			interval ? " 95 % of it |" : "", interval ? "---|" : "");
	for (size_t i = 0; !err && i < rows.n && i < FUNCTIONS_MAX; i++) {
		row_write(out, p, &rows.row[i]);
		rest -= rows.row[i].samples;
	}
	if (!err && rows.n > FUNCTIONS_MAX)
		fprintf(out, "\n%zu more functions have %.2f %%.\n", rows.n - FUNCTIONS_MAX,
			profile_percent(p, rest));
	function_rows_fini(&rows);
	return err;
}

static void node_write(FILE *out, const struct profile *p, const struct call_graph_node *n,
		       size_t depth)
{
	char name[4096], clean[4096];

	stack_frame_name(p, n->frame, name, sizeof(name));
	fprintf(out, "%6.2f %6.2f  %*s%s\n", profile_percent(p, n->total),
		profile_percent(p, n->self), (int)depth, "", plain(clean, sizeof(clean), name));
}

/* Writes the @largest nodes, each below its caller. Returns the number of those left out. */
static size_t nodes_write(FILE *out, const struct profile *p, const struct call_graph *g,
			  const bool *largest)
{
	__u32 at = g->node[0].child;
	size_t depth = 0, n = 0;

	while (at != CALL_GRAPH_NONE) {
		const struct call_graph_node *node = &g->node[at];
		bool shown = largest[at] && profile_percent(p, node->total) >= NODE_PERCENT_MIN;

		if (shown)
			node_write(out, p, node, depth);
		n += shown;
		at = call_graph_next(g, at, shown && depth < DEPTH_MAX, &depth);
	}
	return g->n - 1 - n;
}

static int tree_write(FILE *out, const struct profile *p)
{
	__cleanup(freep) bool *largest = NULL;
	struct call_graph g;
	size_t rest;
	int err;

	if (!has_stacks(p))
		return 0;
	err = call_graph_init(&g, &p->calls);
	if (err < 0)
		return err;
	err = call_graph_largest(&largest, &g, NODES_MAX);
	if (!err) {
		fputs("\n## Call tree\n\nIn per cent of all samples: inclusive, a function with "
		      "what it "
		      "calls, and self.\n\n```\n",
		      out);
		rest = nodes_write(out, p, &g, largest);
		fputs("```\n", out);
		if (rest)
			fprintf(out, "\n%zu smaller calls are left out.\n", rest);
	}
	call_graph_fini(&g);
	return err;
}

/* An item of a list: names in it mean nothing but themselves. */
static void sentence(void *out, const char *text)
{
	char clean[4096];

	fputs("- ", out);
	for (const char *s = sanitize(clean, sizeof(clean), text); *s; s++)
		fprintf(out, strchr("\\`*_[]<>&#|~!", *s) ? "\\%c" : "%c", *s);
	fputc('\n', out);
}

static void losses_write(FILE *out, const struct profile *p)
{
	char text[2048];

	fprintf(out,
		"\n## What it lacks\n\n- %llu of %llu samples are in no mapping, %llu are lost\n",
		p->unmatched, p->total, p->lost);
	shortcomings_each(p, sentence, out);
	if (has_stacks(p))
		sentence(out, stack_ends_summary(text, sizeof(text), p));
}

int markdown_write(FILE *out, const struct profile *p)
{
	int err;

	head(out, p);
	err = functions_write(out, p) ?: tree_write(out, p);
	if (!err)
		losses_write(out, p);
	return err;
}
