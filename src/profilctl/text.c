/* text.c - a profile for people: what is hot, from the top */
#include <string.h>

#include "clean.h"
#include "interval.h"
#include "output.h"

#define NAME_COLUMNS 22
#define LEAST_PERCENT 0.5
#define WARM_PERCENT 1
#define HOT_PERCENT 5
#define SLICE_COLUMNS 50

/* The numbers of a line, up to the name. */
static void numbers(FILE *out, const struct profile *p, __u64 samples, bool colour)
{
	double percent = profile_percent(p, samples);
	struct interval i = interval_of(samples, p->total);
	const char *on = "", *off = "";

	if (colour && percent >= WARM_PERCENT) {
		on = percent >= HOT_PERCENT ? "\033[1;31m" : "\033[32m";
		off = "\033[m";
	}
	fprintf(out, "%s%6.2f %%%s  %5.1f-%5.1f  %9llu %9.3f  ", on, percent, off, i.low, i.high,
		samples, (double)samples * (double)p->tick_ns / 1e9);
}

static bool has_object(enum rows_by by)
{
	return by != ROWS_OBJECT && by != ROWS_THREAD;
}

/* Says whether a row was marked. */
static bool row_write(FILE *out, const struct profile *p, const struct row *row,
		      const struct text_options *t)
{
	char object[256], name[1024];

	clean(name, sizeof(name), row->name);
	numbers(out, p, row->samples, t->colour);
	if (!has_object(t->by)) {
		fprintf(out, "%s\n", name);
		return row->shared;
	}
	clean(object, sizeof(object), profile_base_name(p->objects[row->object].path));
	fprintf(out, "%-*s  %s%s\n", NAME_COLUMNS, name, object, row->shared ? " ~" : "");
	return row->shared;
}

static void other(FILE *out, const struct profile *p, __u64 samples, const char *what)
{
	if (!samples)
		return;
	numbers(out, p, samples, false);
	fprintf(out, "(%s)\n", what);
}

static void head(FILE *out, const struct text_options *t)
{
	static const char *const names[] = {
		[ROWS_FUNCTION] = "function",	   [ROWS_INLINED] = "function, inlined too",
		[ROWS_LINE] = "line and function", [ROWS_INSTRUCTION] = "instruction",
		[ROWS_OBJECT] = "object",	   [ROWS_THREAD] = "thread"
	};

	fprintf(out, "\n%s  self %%   95 %% of it    samples   seconds  ",
		t->colour ? "\033[1m" : "");
	if (!has_object(t->by))
		fputs(names[t->by], out);
	else
		fprintf(out, "%-*s  object", NAME_COLUMNS, names[t->by]);
	fprintf(out, "%s\n", t->colour ? "\033[m" : "");
}

/* The rows that are worth a line; of the others their sum. */
static void table(FILE *out, const struct profile *p, const struct rows *rows,
		  const struct text_options *t)
{
	bool marked = false;
	__u64 rest = 0;
	char what[64];
	size_t n = 0;

	head(out, t);
	for (size_t i = 0; i < rows->n; i++) {
		if (profile_percent(p, rows->row[i].samples) >= LEAST_PERCENT) {
			marked |= row_write(out, p, &rows->row[i], t);
		} else {
			rest += rows->row[i].samples;
			n++;
		}
	}
	snprintf(what, sizeof(what), "%zu more, each below %.1f %%", n, LEAST_PERCENT);
	other(out, p, rest, what);
	other(out, p, p->unmatched, "in no mapping");
	other(out, p, p->lost, "lost");
	if (marked)
		fputs("~ shared out: counters cover its neighbours as well\n", out);
}

/* The greatest count in a column of @group slices, of the functions that are shown. */
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

/* A line for each function of which more than a little is to be told. */
static void when(FILE *out, const struct profile *p)
{
	static const char shades[] = " .:-=+*#%@";
	size_t group = (p->nslices + SLICE_COLUMNS - 1) / SLICE_COLUMNS;
	__u64 peak;

	if (!p->nslices)
		return;
	peak = peak_of(p, group);
	fprintf(out, "\nwhen, a column for %.6g s; '@' are %llu samples\n",
		(double)p->slice_ns * (double)group / 1e9, peak);
	for (size_t i = 0; i < p->nfunctions; i++) {
		const struct function *f = &p->functions[i];
		char name[1024], whole[1024];

		if (!f->slices || profile_percent(p, f->samples) < WARM_PERCENT)
			continue;
		fputc('|', out);
		for (size_t at = 0; at < p->nslices; at += group)
			fputc(shades[(profile_slices(p, f, at, group) * 9 + peak - 1) / peak], out);
		fprintf(out, "|  %s\n",
			clean(name, sizeof(name),
			      profile_function_name(p, f, whole, sizeof(whole))));
	}
}

static void footer(FILE *out, const struct profile *p)
{
	fprintf(out, "\n%llu samples: %llu binned, %llu unmatched, %llu lost; %llu saturated\n",
		p->total, p->binned, p->unmatched, p->lost, p->saturated);
	fprintf(out, "%.6g Hz, a tick is %.6g ms of CPU time; %.2f s",
		p->tick_ns ? 1e9 / (double)p->tick_ns : 0, (double)p->tick_ns / 1e6,
		(double)p->duration_ns / 1e9);
	if (p->cpu_ns)
		fprintf(out, ", %.2f s of them on a CPU", (double)p->cpu_ns / 1e9);
	fputc('\n', out);
	if (p->end == PROFILE_EXITED)
		fprintf(out, "the command exited with status %d\n", p->end_code);
	else if (p->end == PROFILE_KILLED)
		fprintf(out, "the command was killed by signal %d (%s)\n", p->end_code,
			strsignal(p->end_code));
}

int text_write(FILE *out, const struct profile *p, const struct text_options *t)
{
	char command[4096];
	struct rows rows;
	int err = rows_init(&rows, p, t->by);

	if (!err) {
		fprintf(out, "%s (pid %d)\n", clean(command, sizeof(command), p->command),
			(int)p->pid);
		if (p->total)
			table(out, p, &rows, t);
		else
			fputs("\nno samples: it used less CPU time than one tick\n", out);
		when(out, p);
		footer(out, p);
	}
	rows_fini(&rows);
	return err;
}
