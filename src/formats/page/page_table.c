/* page_table.c - the table of functions of a page */
#include "analysis/function_rows.h"
#include "page.h"
#include "profile/confidence.h"
#include "symbols/short_name.h"

#define ROWS_MAX 500
#define NAME_COLUMNS 120
#define TITLE_COLUMNS 1000

/* Writes the numbers of a row, before the name. */
static void numbers(FILE *out, const struct profile *p, __u64 samples, const char *class)
{
	double percent = profile_percent(p, samples);
	struct interval i = confidence_interval(samples, p->total);

	fprintf(out, "<tr%s><td class=\"self s%.0f\" data-v=\"%llu\">%.2f %%</td>", class, percent,
		samples, percent);
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

static void row(FILE *out, const struct profile *p, const struct function_row *r, bool sections)
{
	const struct function *f = r->function;
	size_t i = (size_t)(f - p->functions);
	bool linked = sections && page_has_section(p, i);
	const char *path = p->objects[f->object].path;
	char whole[4096], name[4096];

	profile_function_name(p, f, whole, sizeof(whole));
	numbers(out, p, r->samples, "");
	fputs("<td class=\"name\" title=\"", out);
	page_attribute(out, whole, TITLE_COLUMNS);
	fputs("\">", out);
	if (linked)
		fprintf(out, "<a href=\"#f%zu\">", i);
	page_text(out, fit_name(name, sizeof(name), f->name ? whole : profile_base_name(whole),
				NAME_COLUMNS));
	if (linked)
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

int page_table(FILE *out, const struct profile *p, bool sections)
{
	struct function_rows rows;
	char what[64] = "";
	__u64 rest = 0;
	int err = function_rows_init(&rows, p);

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
	for (size_t i = 0; i < rows.n && !err; i++) {
		if (i < ROWS_MAX)
			row(out, p, &rows.row[i], sections);
		else
			rest += rows.row[i].samples;
	}
	if (rows.n > ROWS_MAX)
		snprintf(what, sizeof(what), "%zu more", rows.n - ROWS_MAX);
	other_row(out, p, rest, what);
	other_row(out, p, p->unmatched, "in no mapping");
	other_row(out, p, p->lost, "lost");
	fputs("</tbody></table>\n", out);
	function_rows_fini(&rows);
	return err;
}
