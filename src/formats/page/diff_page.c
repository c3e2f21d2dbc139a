/* diff_page.c - an HTML page with the changes between two profiles */
#include <stdarg.h>

#include "diff_page.h"
#include "page.h"
#include "page_flame.h"
#include "formats/quantity.h"
#include "profile/stack_ends.h"
#include "symbols/short_name.h"

#define ROWS_MAX 500
#define NAME_COLUMNS 120
#define TITLE_COLUMNS 1000

static void side(FILE *out, const char *what, const struct profile *p)
{
	char text[512], all[256];

	page_fact(out, what, p->command, " class=\"wide\"");
	snprintf(text, sizeof(text), "%llu, %s", p->total, quantity_of_all(all, sizeof(all), p));
	page_fact(out, "samples", text, "");
}

void diff_page_facts(FILE *out, const struct profile *a, const struct profile *b,
		     const struct changes *c)
{
	char text[256];

	fputs("<dl>\n", out);
	side(out, "before", a);
	side(out, "after", b);
	if (!c->sampled)
		snprintf(text, sizeof(text),
			 "not judged: the samples of a sleep depend on each other");
	else
		snprintf(
			text, sizeof(text),
			"%zu of %zu: their intervals exclude 0 (all intervals are right at once in "
			"%g %% of comparisons)",
			c->significant, c->tested, 100 - 100 * COMPARE_ERROR);
	page_fact(out, "functions that changed", text, " class=\"wide\"");
	fputs("</dl>\n", out);
}

static int calls(FILE *out, const struct profile *a, const struct profile *b)
{
	int err;

	if (!has_stacks(a) && !has_stacks(b))
		return 0;
	if (!has_stacks(a) || !has_stacks(b)) {
		fprintf(out,
			"<p>There is no flame graph: the profile %s has no stacks (record -g).</p>",
			has_stacks(a) ? "after" : "before");
		return 0;
	}
	err = page_flame(out, a, b, PAGE_FLAME_BYTES);
	if (!err) {
		page_stack_ends(out, a, "before: ");
		page_stack_ends(out, b, "after: ");
	}
	return err;
}

/* Writes a cell of the table; @value is its sort key. */
__attribute__((format(printf, 4, 5))) static void cell(FILE *out, const char *class, double value,
						       const char *format, ...)
{
	va_list args;

	fprintf(out, "<td class=\"%s\" data-v=\"%f\">", class, value);
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	fputs("</td>", out);
}

static void row(FILE *out, const struct profile *a, const struct profile *b, const struct change *o,
		bool sampled)
{
	double change = o->percent[1] - o->percent[0];
	char name[4096];

	fprintf(out, "<tr class=\"%s\">",
		sampled && !o->significant ? "chance"
		: change > 0		   ? "rises"
					   : "falls");
	cell(out, "self", change, "%+.2f%s", change, o->significant ? " *" : "");
	if (sampled)
		cell(out, "interval", o->low, "%+.2f to %+.2f", o->low, o->high);
	else
		cell(out, "interval", 0, "%s", "");
	cell(out, "samples", o->percent[0], "%.2f %%", o->percent[0]);
	cell(out, "samples", o->percent[1], "%.2f %%", o->percent[1]);
	if (compare_unit(a, b)) {
		double before = compare_quantity(a, o->samples[0]);
		double after = compare_quantity(b, o->samples[1]);

		cell(out, "seconds", before, "%.3f", before);
		cell(out, "seconds", after, "%.3f", after);
	}
	fputs("<td class=\"name\" title=\"", out);
	page_attribute(out, o->name, TITLE_COLUMNS);
	fputs("\">", out);
	page_text(out, fit_name(name, sizeof(name), o->name, NAME_COLUMNS));
	fputs("</td><td class=\"object\" title=\"", out);
	page_attribute(out, o->object, TITLE_COLUMNS);
	fputs("\">", out);
	page_text(out, o->object);
	fputs("</td></tr>\n", out);
}

void diff_page_table(FILE *out, const struct profile *a, const struct profile *b,
		     const struct changes *c)
{
	const char *unit = compare_unit(a, b);

	fputs("<div class=\"tools\"><input type=\"search\" aria-label=\"search\" "
	      "placeholder=\"function or object\"><output class=\"dim\"></output></div>\n"
	      "<table class=\"changes\"><thead><tr><th class=\"self\">change</th>"
	      "<th class=\"interval\">99 % of all</th><th class=\"samples\">before</th>"
	      "<th class=\"samples\">after</th>",
	      out);
	if (unit)
		fprintf(out,
			"<th class=\"seconds\">%s before</th><th class=\"seconds\">%s after</th>",
			unit, unit);
	fputs("<th class=\"name\">function</th><th class=\"object\">object</th></tr></thead>\n"
	      "<tbody>\n",
	      out);
	for (size_t i = 0; i < c->n && i < ROWS_MAX; i++)
		row(out, a, b, &c->change[i], c->sampled);
	fputs("</tbody></table>\n", out);
	if (c->n > ROWS_MAX)
		fprintf(out, "<p>%zu more functions changed less.</p>\n", c->n - ROWS_MAX);
}

int diff_page_write(FILE *out, const struct profile *a, const struct profile *b,
		    const struct changes *c)
{
	int err;

	page_begin(out, "profilctl diff");
	fputs("<h1>What has changed</h1>\n", out);
	diff_page_facts(out, a, b, c);
	err = calls(out, a, b);
	diff_page_table(out, a, b, c);
	page_end(out);
	return err;
}
