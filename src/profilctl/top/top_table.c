/* top_table.c - the rows of top: functions and the processes that ran them */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profile/confidence.h"
#include "analysis/function_rows.h"
#include "analysis/sample_location.h"
#include "profile/call_graph.h"
#include "profile/stack_ends.h"
#include "formats/quantity.h"
#include "base/cleanup.h"

#include "symbols/short_name.h"
#include "base/sanitize.h"
#include "top_table.h"

/*
 * Width of the column of functions, limited so that objects stay near the names on a wide terminal.
 */
#define FUNCTION_LEAST 28
#define FUNCTION_MOST 100

/* The samples of a process in a function. */
struct share {
	const struct function *function;
	__u32 group;
	pid_t pid;
	__u64 samples;
};

static int by_function_and_pid(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* Samples by function and process, in that order. NULL: out of memory. */
static struct share *shares_of(size_t *n, const struct profile *p)
{
	struct function_rows rows;
	struct spots s = { 0 };
	struct share *shares = NULL;

	*n = 0;
	if (!function_rows_init(&rows, p) && !spots_init(&s, p, NULL))
		shares = calloc(s.n + 1, sizeof(*shares));
	for (size_t i = 0; shares && i < s.n; i++) {
		__u32 group = s.spot[i].place.group;

		const struct function *f = s.spot[i].function;

		if (f)
			shares[(*n)++] =
				(struct share){ rows.row[rows.of[f - p->functions]].function, group,
						group ? p->groups[group].pid : 0,
						s.spot[i].place.count };
	}
	function_rows_fini(&rows);
	spots_fini(&s);
	if (*n)
		qsort(shares, *n, sizeof(*shares), by_function_and_pid);
	return shares;
}

/* Sets the process of one function from its @n shares at @s. */
static void name_process(struct top_row *r, const struct profile *p, const struct share *s,
			 size_t n)
{
	__u64 most = 0;
	__u32 group = 0;

	for (size_t i = 0, next; i < n; i = next) {
		__u64 samples = 0;

		for (next = i; next < n && s[next].pid == s[i].pid; next++)
			samples += s[next].samples;
		r->processes++;
		r->samples += samples;
		if (samples <= most)
			continue;
		most = samples;
		group = s[i].group;
	}
	if (!group)
		return;
	r->pid = p->groups[group].pid;
	sanitize(r->command, sizeof(r->command), p->groups[group].command);
}

/* For a function without a name only the offset, since its row shows the object. */
static int name_function(struct top_row *r, const struct profile *p)
{
	const char *path = p->objects[r->function->object].path;
	char name[4096], clean[4096];
	size_t n;

	sanitize(r->object, sizeof(r->object), profile_base_name(path));
	profile_function_name(p, r->function, name, sizeof(name));
	n = strlen(path);
	r->name = strdup(sanitize(clean, sizeof(clean),
				  !strncmp(name, path, n) && name[n] == '+' ? name + n : name));
	return r->name ? 0 : -ENOMEM;
}

static bool matches(const struct top_row *r, const char *filter)
{
	return !filter || !*filter || strcasestr(r->name, filter) ||
	       strcasestr(r->object, filter) || strcasestr(r->command, filter);
}

static int by_place(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int by_samples(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	return x->samples != y->samples ? (x->samples > y->samples ? -1 : 1)
					: strcmp(x->name, y->name);
}

static int by_function(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int d = strcmp(x->name, y->name);

	return d ? d : by_samples(a, b);
}

static int by_object(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int d = strcmp(x->object, y->object);

	return d ? d : by_samples(a, b);
}

static int by_process(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	return x->pid != y->pid ? (x->pid < y->pid ? -1 : 1) : by_samples(a, b);
}

static int by_total(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	return x->total != y->total ? (x->total > y->total ? -1 : 1) : by_samples(a, b);
}

/*
 * The inclusive samples of @f, whose frame has the place of another instance if it was made at run
 * time more than once; 0: it has no frame.
 */
static __u64 generated_total(const struct profile *p, const struct function *f,
			     const struct call_graph_sum *sum)
{
	for (size_t i = 0; f->name && i < p->calls.nframes; i++) {
		const struct call_frame *frame = &p->calls.frame[i];

		if (frame->name && frame->object == f->object && !strcmp(frame->name, f->name))
			return sum[i].total;
	}
	return 0;
}

/* Inclusive samples, by object and offset; the caller frees them. NULL: out of memory. */
static struct function *totals_of(const struct profile *p, const struct call_graph_sum *sum,
				  size_t *n)
{
	const struct call_tree *t = &p->calls;
	struct function *totals = calloc(t->nframes + 1, sizeof(*totals));

	*n = 0;
	for (size_t i = 0; sum && totals && i < t->nframes; i++)
		totals[(*n)++] = (struct function){ .object = t->frame[i].object,
						    .offset = t->frame[i].offset,
						    .samples = sum[i].total };
	if (*n)
		qsort(totals, *n, sizeof(*totals), by_place);
	return totals;
}

static int add_totals(struct top_rows *rows, const struct profile *p)
{
	__cleanup(freep) struct call_graph_sum *sum = NULL;
	__cleanup(freep) struct function *totals = NULL;
	size_t n;

	if (!has_stacks(p))
		return 0;
	sum = call_graph_sums(&p->calls);
	totals = sum ? totals_of(p, sum, &n) : NULL;
	if (!totals)
		return -ENOMEM;
	for (size_t i = 0; i < rows->n; i++) {
		struct top_row *r = &rows->row[i];
		const struct function *f = r->function;
		const struct function *found = bsearch(f, totals, n, sizeof(*totals), by_place);

		if (p->objects[f->object].kind == OBJECT_ANON)
			r->total = generated_total(p, f, sum);
		else
			r->total = found ? found->samples : 0;
		r->total = r->total ? r->total : r->samples;
	}
	return 0;
}

int top_rows_init(struct top_rows *rows, const struct profile *p, enum top_order order,
		  const char *filter)
{
	static int (*const orders[])(const void *, const void *) = {
		[TOP_BY_SAMPLES] = by_samples, [TOP_BY_FUNCTION] = by_function,
		[TOP_BY_OBJECT] = by_object,   [TOP_BY_PROCESS] = by_process,
		[TOP_BY_TOTAL] = by_total,
	};
	size_t n;
	struct share *shares = shares_of(&n, p);
	int err = 0;

	*rows = (struct top_rows){ .row = calloc(p->nfunctions + 1, sizeof(*rows->row)) };
	if (!shares || !rows->row) {
		free(shares);
		return -ENOMEM;
	}
	for (size_t i = 0, next; i < n && !err; i = next) {
		struct top_row r = { .function = shares[i].function };

		for (next = i; next < n && shares[next].function == r.function; next++)
			;
		err = name_function(&r, p);
		if (err < 0)
			break;
		name_process(&r, p, &shares[i], next - i);
		if (matches(&r, filter))
			rows->row[rows->n++] = r;
		else
			free(r.name);
	}
	free(shares);
	if (err < 0 || add_totals(rows, p) < 0)
		return -ENOMEM;
	if (rows->n)
		qsort(rows->row, rows->n, sizeof(*rows->row), orders[order]);
	return 0;
}

void top_rows_fini(struct top_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		free(rows->row[i].name);
	free(rows->row);
	*rows = (struct top_rows){ 0 };
}

enum column {
	COLUMN_SELF,
	COLUMN_TOTAL,
	COLUMN_INTERVAL,
	COLUMN_SAMPLES,
	COLUMN_SECONDS,
	COLUMN_PID,
	COLUMN_COMMAND,
	COLUMN_FUNCTION,
	COLUMN_OBJECT,
	COLUMNS,
};

/* Columns of rank 0 are always shown; others in order of rank, while the functions have room. */
static const struct {
	const char *heading;
	int width; /* negative: left-aligned */
	int rank;
} columns[COLUMNS] = {
	[COLUMN_SELF] = { "self %", 6, 0 },
	[COLUMN_TOTAL] = { "incl %", 6, 0 }, /* only with stacks */
	[COLUMN_INTERVAL] = { "95 % of it", 11, 5 },
	[COLUMN_SAMPLES] = { "samples", 7, 4 },
	[COLUMN_SECONDS] = { "seconds", 8, 6 },
	[COLUMN_PID] = { "pid", 7, 1 },
	[COLUMN_COMMAND] = { "command", -10, 2 },
	[COLUMN_FUNCTION] = { "function", -1, 0 },
	[COLUMN_OBJECT] = { "object", -14, 3 },
};

/* Returns the shown columns as bits, and the width of the functions' column. */
static unsigned int choose_columns(int *function, size_t room, bool stacks)
{
	int left = (int)room - 6 - 2 - (stacks ? 6 + 2 : 0); /* columns that are always shown */
	unsigned int chosen =
		1u << COLUMN_SELF | 1u << COLUMN_FUNCTION | (stacks ? 1u << COLUMN_TOTAL : 0);

	for (int rank = 1; rank < COLUMNS; rank++) {
		for (int c = 0; c < COLUMNS; c++) {
			int width = abs(columns[c].width) + 2;

			if (columns[c].rank != rank || left - width < FUNCTION_LEAST)
				continue;
			left -= width;
			chosen |= 1u << c;
		}
	}
	*function = left < 1 ? 1 : left > FUNCTION_MOST ? FUNCTION_MOST : left;
	return chosen;
}

/* Writes the contents of a cell. */
static void cell(char *out, size_t bytes, const struct profile *p, const struct top_row *r,
		 enum column c, int width)
{
	__u64 samples = r->samples;
	struct interval i;

	switch (c) {
	case COLUMN_SELF:
		snprintf(out, bytes, "%.2f", profile_percent(p, samples));
		return;
	case COLUMN_TOTAL:
		snprintf(out, bytes, "%.2f", profile_percent(p, r->total));
		return;
	case COLUMN_INTERVAL:
		i = confidence_interval(samples, p->total);
		snprintf(out, bytes, "%.1f-%5.1f", i.low, i.high);
		return;
	case COLUMN_SAMPLES:
		snprintf(out, bytes, "%llu", samples);
		return;
	case COLUMN_SECONDS:
		snprintf(out, bytes, "%.3f", (double)samples * (double)p->tick_ns / 1e9);
		return;
	case COLUMN_PID:
		if (r->processes > 1)
			snprintf(out, bytes, "%zu*", r->processes);
		else if (r->pid)
			snprintf(out, bytes, "%d", (int)r->pid);
		else
			snprintf(out, bytes, "-");
		return;
	case COLUMN_COMMAND:
		snprintf(out, bytes, "%s", r->command);
		break;
	case COLUMN_FUNCTION:
		fit_name(out, bytes, r->name, (size_t)width);
		return;
	default:
		snprintf(out, bytes, "%s", r->object);
	}
	fit_text(out, bytes, (size_t)width);
}

/* Writes a row; @r NULL: the headings. */
static void line(FILE *out, const struct profile *p, const struct top_row *r, unsigned int chosen,
		 int function)
{
	for (int c = 0; c < COLUMNS; c++) {
		int width = c == COLUMN_FUNCTION ? -function : columns[c].width;
		char text[1024];
		int pad;

		if (!(chosen & 1u << c))
			continue;
		if (r)
			cell(text, sizeof(text), p, r, (enum column)c, abs(width));
		else
			snprintf(text, sizeof(text), "%.*s", abs(width), columns[c].heading);
		pad = abs(width) - (int)columns_of(text);
		pad = pad < 0 ? 0 : pad;
		fprintf(out, "%s%*s%s%*s", c ? "  " : "", width > 0 ? pad : 0, "", text,
			width < 0 && chosen >> (c + 1) ? pad : 0, "");
	}
	fputc('\n', out);
}

static void heading(FILE *out, const struct profile *p, const struct top_table *t)
{
	double seconds = (double)t->period_ns / 1e9;
	double cpu = (double)p->total * (double)p->tick_ns / 1e9;
	char when[16] = "", states[128];
	time_t now = time(NULL);
	struct tm tm;

	strftime(when, sizeof(when), "%H:%M:%S", localtime_r(&now, &tm));
	fprintf(out, "profilctl top - %s, %.1f s: %llu samples at %.6g Hz", when, seconds, p->total,
		p->tick_ns ? 1e9 / (double)p->tick_ns : 0);
	/* 0 for the machine profile, which has no processes. */
	if (p->processes)
		fprintf(out, ", %zu process%s", p->processes, p->processes > 1 ? "es" : "");
	fputc('\n', out);
	if (t->note)
		fprintf(out, "%s\n", t->note);
	else if (profile_is_wall(p))
		fprintf(out, "%s\n", quantity_of_states(states, sizeof(states), p, t->period_ns));
	else
		fprintf(out, "%.3f s of CPU time: %.2f CPUs; %llu samples in no mapping\n", cpu,
			seconds > 0 ? cpu / seconds : 0, p->unmatched);
	if (p->calls_folded)
		fprintf(out, "the tree of calls was full: %llu samples moved to a caller\n",
			p->calls_folded);
}

void top_write(FILE *out, const struct profile *p, const struct top_rows *rows,
	       const struct top_table *t)
{
	int function;
	unsigned int chosen = choose_columns(&function, t->columns, has_stacks(p));

	heading(out, p, t);
	line(out, p, NULL, chosen, function);
	for (size_t i = t->first; i < rows->n && i - t->first + TOP_HEADING < t->lines; i++)
		line(out, p, &rows->row[i], chosen, function);
}
