/* text.c - a profile as text: the hottest rows first */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "profile/confidence.h"
#include "symbols/short_name.h"
#include "base/sanitize.h"
#include "base/utf8.h"
#include "formats/quantity.h"
#include "formats/shortcomings.h"
#include "text.h"
#include "text_stacks.h"

#define WARM_PERCENT 1
#define HOT_PERCENT 5
#define SLICE_COLUMNS 50
#define REST_PERCENT \
	50 /* of samples in rows that are not shown, from which on a view by file helps */

#define NUMBERS_COLUMNS 45 /* width of the columns before the name */
#define INTERVAL_COLUMNS 13
#define NARROW_COLUMNS 100 /* below this width the interval is omitted */
#define NAME_COLUMNS_MIN 22
#define OBJECT_COLUMNS_MIN 6

/* The layout of a table. */
struct table {
	FILE *out;
	const struct profile *profile;
	const struct text_options *options;
	const struct rows *rows;
	size_t shown; /* number of rows to show */
	bool interval;
	bool *alike; /* by object: another one with rows has the same path; NULL: none */
	size_t name_columns;
	size_t object_columns;
};

/* Writes the numbers of a line, before the name. */
static void numbers(const struct table *t, __u64 samples, bool colour)
{
	double percent = profile_percent(t->profile, samples);
	struct interval i = confidence_interval(samples, t->profile->total);
	const char *on = "", *off = "";

	if (colour && percent >= WARM_PERCENT) {
		on = percent >= HOT_PERCENT ? "\033[1;31m" : "\033[32m";
		off = "\033[m";
	}
	fprintf(t->out, "%s%6.2f %%%s  ", on, percent, off);
	if (t->interval)
		fprintf(t->out, "%5.1f-%5.1f  ", i.low, i.high);
	if (profile_is_of_events(t->profile) && t->profile->period < 2)
		fprintf(t->out, "%9llu %9s  ", samples, ""); /* at a frequency, or each event */
	else if (profile_is_of_events(t->profile))
		fprintf(t->out, "%9llu %9.3g  ", samples,
			(double)samples * (double)t->profile->period);
	else
		fprintf(t->out, "%9llu %9.3f  ", samples,
			(double)samples * (double)t->profile->tick_ns / 1e9);
}

/* Writes the name of @row, cut to @columns; (size_t)-1: not cut. */
static void row_name(char *out, size_t bytes, const struct row *row, size_t columns)
{
	int at = (int)row->function_at, len = (int)row->function_len;
	const char *rest = row->name + row->function_at + row->function_len;
	char function[4096], tail[4096], name[4096];
	size_t room;

	if (columns == (size_t)-1 || !len) {
		sanitize(out, bytes, row->name);
		if (columns != (size_t)-1)
			fit_text(out, bytes, columns);
		return;
	}
	snprintf(function, sizeof(function), "%.*s", len, row->name + at);
	snprintf(tail, sizeof(tail), "%s", rest);
	fit_name(name, sizeof(name), function, columns);
	if ((size_t)at + columns_of(name) + columns_of(tail) > columns)
		fit_text(tail, sizeof(tail), columns / 3);
	room = (size_t)at + columns_of(tail);
	fit_name(name, sizeof(name), function, columns > room ? columns - room : 0);
	snprintf(function, sizeof(function), "%.*s%.2000s%.1500s", at, row->name, name, tail);
	sanitize(out, bytes, function);
	fit_text(out, bytes, columns);
}

static int by_path(const void *a, const void *b)
{
	const struct object *x = *(const struct object *const *)a;
	const struct object *y = *(const struct object *const *)b;

	return strcmp(x->path, y->path) ?: (x > y) - (x < y);
}

/*
 * Finds objects of one path: a file and its replacement, files of two mount namespaces, or the
 * memory of two processes. Only objects of rows count. Returns NULL if out of memory, too: the rows
 * are only harder to distinguish then.
 */
static bool *find_alike(const struct profile *p, const struct rows *rows)
{
	__cleanup(freep) const struct object **object = calloc(rows->n + 1, sizeof(*object));
	bool *alike = calloc(p->nobjects + 1, sizeof(*alike));

	for (size_t i = 0; object && i < rows->n; i++)
		object[i] = &p->objects[rows->row[i].object];
	if (object && rows->n)
		qsort(object, rows->n, sizeof(*object), by_path);
	for (size_t i = 1; object && alike && i < rows->n; i++) {
		if (object[i] != object[i - 1] && !strcmp(object[i]->path, object[i - 1]->path))
			alike[object[i] - p->objects] = alike[object[i - 1] - p->objects] = true;
	}
	return alike;
}

/* Writes what distinguishes the object of @row from others with its path; "" if there are none. */
static const char *which_object(char *out, size_t bytes, const struct table *t,
				const struct row *row)
{
	const struct object *o = &t->profile->objects[row->object];

	*out = '\0';
	if (!t->alike || !t->alike[row->object])
		return out;
	if (o->pid)
		snprintf(out, bytes, " (pid %d)", (int)o->pid);
	else if (*o->build_id)
		snprintf(out, bytes, " (%.8s)", o->build_id);
	else if (o->ino)
		snprintf(out, bytes, " (inode %llu)", o->ino);
	return out;
}

static void row_object(char *out, size_t bytes, const struct table *t, const struct row *row)
{
	const char *path = t->profile->objects[row->object].path;
	char which[48];
	size_t n;

	sanitize(out, bytes, profile_base_name(path));
	n = strlen(out);
	snprintf(out + n, bytes - n, "%s", which_object(which, sizeof(which), t, row));
}

/* Writes @s, padded to @columns. */
static void column(FILE *out, const char *s, size_t columns)
{
	size_t n = columns_of(s);

	fprintf(out, "%s%*s", s, n < columns ? (int)(columns - n) : 0, "");
}

static void row_write(const struct table *t, const struct row *row)
{
	char object[1024], name[4200], which[48] = "";
	size_t columns = t->name_columns;

	if (t->options->by == ROWS_OBJECT)
		columns -= strlen(which_object(which, sizeof(which), t, row));
	row_name(name, sizeof(name), row, t->options->full_names ? (size_t)-1 : columns);
	numbers(t, row->samples, t->options->colour);
	if (!rows_have_object(t->options->by)) {
		fprintf(t->out, "%s%s\n", name, which);
		return;
	}
	row_object(object, sizeof(object), t, row);
	fit_text(object, sizeof(object), t->object_columns);
	column(t->out, name, t->name_columns);
	fprintf(t->out, "  %s\n", object);
}

static void other(const struct table *t, __u64 samples, const char *what)
{
	if (!samples)
		return;
	numbers(t, samples, false);
	fprintf(t->out, "(%s)\n", what);
}

static const char *heading(enum rows_by by)
{
	return by == ROWS_INLINED ? "function, inlined too"
	       : by == ROWS_LINE  ? "line and function"
				  : rows_by_name(by);
}

static void head(const struct table *t)
{
	const struct text_options *o = t->options;

	fprintf(t->out, "\n%s  self %%  %s  samples   %s  ", o->colour ? "\033[1m" : "",
		t->interval ? " 95 % of it  " : "",
		!profile_is_of_events(t->profile) ? "seconds"
		: t->profile->period > 1	  ? " events"
						  : "       ");
	if (!rows_have_object(o->by)) {
		fputs(heading(o->by), t->out);
	} else {
		column(t->out, heading(o->by), t->name_columns);
		fputs("  object", t->out);
	}
	fprintf(t->out, "%s\n", o->colour ? "\033[m" : "");
}

static size_t greater(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t lesser(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Makes the columns of names and objects as wide as their contents, if there is room. */
static void lay_out(struct table *t)
{
	const struct text_options *o = t->options;
	size_t columns = o->columns ? o->columns : TEXT_COLUMNS, name = NAME_COLUMNS_MIN;
	size_t object = OBJECT_COLUMNS_MIN, room;

	t->interval = columns >= NARROW_COLUMNS && !profile_is_off_cpu(t->profile);
	room = NUMBERS_COLUMNS - (t->interval ? 0 : INTERVAL_COLUMNS);
	room = columns > room + NAME_COLUMNS_MIN ? columns - room : NAME_COLUMNS_MIN;
	for (size_t i = 0; i < t->shown; i++) {
		const struct row *row = &t->rows->row[i];
		char text[4200];

		row_name(text, sizeof(text), row, o->full_names ? (size_t)-1 : room);
		name = greater(name, columns_of(text));
		if (rows_have_object(o->by)) {
			row_object(text, sizeof(text), t, row);
			object = greater(object, columns_of(text));
		}
	}
	t->name_columns = name;
	t->object_columns = object;
	if (!rows_have_object(o->by))
		t->name_columns = o->full_names ? name : room;
	else if (!o->full_names) {
		t->object_columns = lesser(object, greater(room / 3, OBJECT_COLUMNS_MIN));
		room -= lesser(room, t->object_columns + 2);
		t->name_columns = lesser(name, greater(room, NAME_COLUMNS_MIN));
	}
}

static double limit_of(const struct text_options *o)
{
	if (o->all)
		return 0;
	if (o->least_percent > 0)
		return o->least_percent;
	return o->rows ? 0 : TEXT_LEAST_PERCENT;
}

/* The number of rows to show. */
static size_t rows_shown(const struct table *t)
{
	double limit = limit_of(t->options);
	size_t n = 0;

	while (n < t->rows->n && (!t->options->rows || n < t->options->rows) &&
	       profile_percent(t->profile, t->rows->row[n].samples) >= limit)
		n++;
	return n;
}

/* Writes the rows to show, and the sum of the others. */
static void table_write(FILE *out, const struct profile *p, const struct rows *rows,
			const struct text_options *o)
{
	struct table t = { .out = out, .profile = p, .options = o, .rows = rows };
	__u64 rest = 0;
	char what[96];

	t.shown = rows_shown(&t);
	if (rows_have_object(o->by) || o->by == ROWS_OBJECT)
		t.alike = find_alike(p, rows);
	lay_out(&t);
	head(&t);
	for (size_t i = 0; i < t.shown; i++)
		row_write(&t, &rows->row[i]);
	for (size_t i = t.shown; i < rows->n; i++)
		rest += rows->row[i].samples;
	if (o->rows && t.shown == o->rows)
		snprintf(what, sizeof(what), "%zu more", rows->n - t.shown);
	else
		snprintf(what, sizeof(what), "%zu more, each below %.3g %%%s", rows->n - t.shown,
			 limit_of(o),
			 o->by == ROWS_FUNCTION && profile_percent(p, rest) > REST_PERCENT
				 ? "; --by object sums them up"
				 : "");
	other(&t, rest, what);
	other(&t, p->unmatched, "in no mapping");
	other(&t, p->lost, "lost");
	free(t.alike);
}

/* The largest sum of @group slices of a shown function. */
static __u64 peak_of(const struct profile *p, size_t group)
{
	__u64 peak = 1;

	for (size_t i = 0; i < p->nfunctions; i++) {
		const struct function *f = &p->functions[i];

		for (size_t at = 0; f->slices && at < p->nslices; at += group) {
			__u64 n = profile_slices(p, f, at, group);

			peak = n > peak ? n : peak;
		}
	}
	return peak;
}

/* Writes the samples over time of each function with enough of them. */
static void when(FILE *out, const struct profile *p, const struct text_options *o)
{
	static const char shades[] = " .:-=+*#%@";
	size_t group = (p->nslices + SLICE_COLUMNS - 1) / SLICE_COLUMNS;
	size_t columns = o->columns ? o->columns : TEXT_COLUMNS;
	__u64 peak;

	if (!p->nslices)
		return;
	columns = greater(columns, SLICE_COLUMNS + 4 + NAME_COLUMNS_MIN) - SLICE_COLUMNS - 4;
	peak = peak_of(p, group);
	fprintf(out, "\nwhen, a column for %.6g s; '@' are %llu samples\n",
		(double)p->slice_ns * (double)group / 1e9, peak);
	for (size_t i = 0; i < p->nfunctions; i++) {
		const struct function *f = &p->functions[i];
		char name[4200], whole[4200];

		if (!f->slices || profile_percent(p, f->samples) < WARM_PERCENT)
			continue;
		fputc('|', out);
		for (size_t at = 0; at < p->nslices; at += group)
			fputc(shades[(profile_slices(p, f, at, group) * 9 + peak - 1) / peak], out);
		profile_function_name(p, f, whole, sizeof(whole));
		if (!o->full_names) {
			fit_name(name, sizeof(name), whole, columns);
			snprintf(whole, sizeof(whole), "%s", name);
		}
		fprintf(out, "|  %s\n", sanitize(name, sizeof(name), whole));
	}
}

static void sentence(void *out, const char *text)
{
	fprintf(out, "%s\n", text);
}

static void footer(FILE *out, const struct profile *p)
{
	__u64 kernel = profile_kernel_samples(p);
	char words[256];

	fprintf(out, "\n%llu %s: %llu binned, %llu unmatched, %llu lost", p->total,
		p->total == 1 ? "sample" : "samples", p->binned, p->unmatched, p->lost);
	if (kernel)
		fprintf(out, "; %.2f %% in the kernel, %.2f %% in user mode",
			profile_percent(p, kernel), profile_percent(p, p->binned - kernel));
	fprintf(out, "\n%s; %.2f s", quantity_of_sample(words, sizeof(words), p),
		(double)p->duration_ns / 1e9);
	if (p->cpu_ns)
		fprintf(out, ", %.2f s of CPU time", (double)p->cpu_ns / 1e9);
	fputc('\n', out);
	if (profile_is_wall(p))
		fprintf(out, "%s\n", quantity_of_states(words, sizeof(words), p, p->duration_ns));
	shortcomings_each(p, sentence, out);
	text_stacks(out, p);
	if (p->end == PROFILE_EXITED)
		fprintf(out, "the command exited with status %d\n", p->end_code);
	else if (p->end == PROFILE_KILLED)
		fprintf(out, "the command was killed by signal %d (%s)\n", p->end_code,
			strsignal(p->end_code));
}

/* Cuts @s, which is UTF-8, to @columns characters, the last three of them "...". */
static void cut(char *s, size_t columns)
{
	char *end = s;

	for (size_t n = 0; *s; n++, s += utf8_bytes(s)) {
		if (n + strlen("...") == columns)
			end = s;
		if (n == columns) {
			strcpy(end, "...");
			return;
		}
	}
}

/* Writes the command, which can have thousands of characters, and how many processes have samples.
 */
static void headline(FILE *out, const struct profile *p, const struct text_options *t)
{
	size_t columns = t->columns ? t->columns : TEXT_COLUMNS, used;
	char command[4096], processes[64], words[80] = "";

	if (*quantity_of_processes(processes, sizeof(processes), p))
		snprintf(words, sizeof(words), " (%s)", processes);
	used = strlen(words) + NAME_COLUMNS_MIN;
	sanitize(command, sizeof(command), p->command);
	if (!t->full_names)
		cut(command, NAME_COLUMNS_MIN + (columns > used ? columns - used : 0));
	fprintf(out, "%s%s\n", command, words);
}

/* Says why there are no samples, as far as it is known. */
static void nothing(FILE *out, const struct profile *p)
{
	fputs("\nno samples", out);
	if (profile_is_wall(p))
		fputs(": no thread that is selected ran, or waited since it ran", out);
	else if (profile_is_off_cpu(p))
		fputs(": no sleep has begun meanwhile", out);
	else if (!p->event && !p->pid)
		fputs(": no process that is selected and that you may observe used CPU time", out);
	else if (!p->event && p->cpu_ns > p->tick_ns)
		fprintf(out, " of %.3f s of CPU time", (double)p->cpu_ns / 1e9);
	else if (!p->event)
		fputs(": less CPU time was used than a sample stands for", out);
	fputc('\n', out);
}

int text_write(FILE *out, const struct profile *p, const struct text_options *t)
{
	struct rows rows;
	int err = rows_init(&rows, p, t->by);

	if (!err) {
		headline(out, p, t);
		if (p->total)
			table_write(out, p, &rows, t);
		else
			nothing(out, p);
		when(out, p, t);
		footer(out, p);
	}
	rows_fini(&rows);
	return err;
}
