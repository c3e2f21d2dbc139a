/* html.c - a profile as one HTML page, readable without network and scripts */
#include <string.h>
#include <time.h>

#include "analysis/function_rows.h"
#include "formats/quantity.h"
#include "formats/shortcomings.h"
#include "formats/format.h"
#include "page.h"
#include "page_flame.h"
#include "profile/confidence.h"
#include "profile/stack_ends.h"
#include "symbols/short_name.h"

#define ROWS_MAX 500
#define NAME_COLUMNS 120
#define TITLE_COLUMNS 1000

/* Writes "unknown" for a time whose year does not fit: a file can have any number. */
static void begun(char *out, size_t bytes, time_t started)
{
	struct tm tm;

	if (!gmtime_r(&started, &tm) || !strftime(out, bytes, "%Y-%m-%d %H:%M:%S UTC", &tm))
		snprintf(out, bytes, "unknown");
}

/* One line, so that what was measured is at the top of the window; a click shows the rest. */
static void provenance(FILE *out, const struct profile *p)
{
	char text[256], words[64];

	fprintf(out, "<details class=\"facts\"><summary>%llu %s in %.2f s, %s</summary>\n<dl>\n",
		p->total, p->total == 1 ? "sample" : "samples", (double)p->duration_ns / 1e9,
		quantity_of_sample(text, sizeof(text), p));
	page_fact(out, "command", p->command, " class=\"wide\"");
	begun(text, sizeof(text), p->started);
	page_fact(out, "begun", text, "");
	snprintf(text, sizeof(text), "%.2f s", (double)p->duration_ns / 1e9);
	page_fact(out, "duration", text, "");
	page_fact(out, "rate", quantity_of_sample(text, sizeof(text), p), "");
	snprintf(text, sizeof(text), "%llu: %llu binned, %llu unmatched, %llu lost", p->total,
		 p->binned, p->unmatched, p->lost);
	page_fact(out, "samples", text, "");
	if (profile_kernel_samples(p)) {
		snprintf(text, sizeof(text), "%.2f %% of the samples",
			 profile_percent(p, profile_kernel_samples(p)));
		page_fact(out, "in the kernel", text, "");
	}
	quantity_of_processes(words, sizeof(words), p);
	snprintf(text, sizeof(text), "%s%sprofilctl " PROFIL_VERSION, words, *words ? ", " : "");
	page_fact(out, "from", text, "");
	fputs("</dl></details>\n", out);
}

/* Writes the numbers of a row, before the name. */
static void numbers(FILE *out, const struct profile *p, __u64 samples, const char *class)
{
	double percent = profile_percent(p, samples);
	struct interval i = confidence_interval(samples, p->total);

	fprintf(out,
		"<tr%s><td class=\"self\" data-v=\"%llu\" style=\"--share:%.1f%%\">%.2f %%</td>",
		class, samples, percent, percent);
	if (profile_is_off_cpu(p))
		fputs("<td class=\"interval\" data-v=\"0\"></td>", out);
	else
		fprintf(out, "<td class=\"interval\" data-v=\"%f\">%.1f&ndash;%.1f</td>", i.low,
			i.low, i.high);
	fprintf(out, "<td class=\"samples\" data-v=\"%llu\">%llu</td>", samples, samples);
	if (p->tick_ns)
		fprintf(out, "<td class=\"seconds\" data-v=\"%llu\">%.3f</td>", samples,
			(double)samples * (double)p->tick_ns / 1e9);
}

static void row(FILE *out, const struct profile *p, const struct function_row *r)
{
	const struct function *f = r->function;
	size_t i = (size_t)(f - p->functions);
	const char *path = p->objects[f->object].path;
	char whole[4096], name[4096];

	profile_function_name(p, f, whole, sizeof(whole));
	numbers(out, p, r->samples, "");
	fputs("<td class=\"name\" title=\"", out);
	page_attribute(out, whole, TITLE_COLUMNS);
	fputs("\">", out);
	if (page_has_section(p, i))
		fprintf(out, "<a href=\"#f%zu\">", i);
	page_text(out, fit_name(name, sizeof(name), f->name ? whole : profile_base_name(whole),
				NAME_COLUMNS));
	if (page_has_section(p, i))
		fputs("</a>", out);
	fputs("</td><td class=\"object\" title=\"", out);
	page_attribute(out, path, TITLE_COLUMNS);
	fputs("\">", out);
	page_text(out, profile_base_name(path));
	fputs("</td></tr>\n", out);
}

static void other_row(FILE *out, const struct profile *p, __u64 samples, const char *what)
{
	if (!samples)
		return;
	numbers(out, p, samples, " class=\"rest\"");
	fprintf(out, "<td class=\"name\">(%s)</td><td class=\"object\"></td></tr>\n", what);
}

static void table(FILE *out, const struct profile *p, const struct function_rows *rows)
{
	char what[64] = "";
	__u64 rest = 0;

	fputs("<div class=\"tools\"><input type=\"search\" aria-label=\"search\" "
	      "placeholder=\"function or object\"><output class=\"dim\"></output></div>\n",
	      out);
	fprintf(out, "<table data-total=\"%llu\"><thead><tr>", p->total);
	fprintf(out,
		"<th class=\"self\" aria-sort=\"descending\">self</th>"
		"<th class=\"interval\">95 %% of it</th><th class=\"samples\">samples</th>"
		"%s<th class=\"name\">function</th>"
		"<th class=\"object\">object</th></tr></thead>\n<tbody>\n",
		p->tick_ns ? "<th class=\"seconds\">seconds</th>" : "");
	for (size_t i = 0; i < rows->n; i++) {
		if (i < ROWS_MAX)
			row(out, p, &rows->row[i]);
		else
			rest += rows->row[i].samples;
	}
	if (rows->n > ROWS_MAX)
		snprintf(what, sizeof(what), "%zu more", rows->n - ROWS_MAX);
	other_row(out, p, rest, what);
	other_row(out, p, p->unmatched, "in no mapping");
	other_row(out, p, p->lost, "lost");
	fputs("</tbody></table>\n", out);
}

static void sentence(void *out, const char *text)
{
	fputs("<li>", out);
	page_text(out, text);
	fputs("</li>\n", out);
}

static void objects(FILE *out, const struct profile *p)
{
	fputs("<details><summary>Files and their build ids</summary><dl>\n", out);
	for (size_t i = 0; i < p->nobjects; i++) {
		const struct object *o = &p->objects[i];

		fputs("<div class=\"wide\"><dt>", out);
		page_text(out, o->path);
		fputs("</dt><dd><code>", out);
		page_text(out, *o->build_id ? o->build_id : "none");
		fputs("</code></dd></div>\n", out);
	}
	fputs("</dl></details>\n", out);
}

/* Writes the calls, if the profile has stacks. */
static int calls(FILE *out, const struct profile *p)
{
	int err = has_stacks(p) ? page_flame(out, p, NULL) : 0;

	if (!err && has_stacks(p))
		page_stack_ends(out, p, "");
	return err;
}

int html_write(FILE *out, const struct profile *p)
{
	struct function_rows rows;
	char program[256];
	int err = function_rows_init(&rows, p);

	if (err < 0) {
		function_rows_fini(&rows);
		return err;
	}
	page_begin(out, p->command);
	fputs("<h1>", out);
	page_text(out, profile_base_name(profile_program(program, sizeof(program), p)));
	fputs("</h1>\n", out);
	provenance(out, p);
	err = calls(out, p);
	fputs("<ul class=\"shortcomings\">\n", out);
	shortcomings_each(p, sentence, out);
	fputs("</ul>\n", out);
	table(out, p, &rows);
	function_rows_fini(&rows);
	if (!err)
		err = page_groups(out, p);
	page_strips(out, p);
	if (!err)
		err = page_sections(out, p);
	objects(out, p);
	page_end(out);
	return err;
}
