/* html.c - a profile as one HTML page, readable without network and scripts */
#include <string.h>
#include <time.h>

#include "formats/quantity.h"
#include "formats/shortcomings.h"
#include "formats/format.h"
#include "page.h"
#include "page_flame.h"
#include "profile/stack_ends.h"

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
	int err = has_stacks(p) ? page_flame(out, p, NULL, PAGE_FLAME_BYTES) : 0;

	if (!err && has_stacks(p))
		page_stack_ends(out, p, "");
	return err;
}

int html_write(FILE *out, const struct profile *p)
{
	char program[256];
	int err;

	page_begin(out, p->command);
	fputs("<h1>", out);
	page_text(out, profile_base_name(profile_program(program, sizeof(program), p)));
	fputs("</h1>\n", out);
	provenance(out, p);
	err = calls(out, p);
	fputs("<ul class=\"shortcomings\">\n", out);
	shortcomings_each(p, sentence, out);
	fputs("</ul>\n", out);
	err = err ?: page_table(out, p, true) ?: page_groups(out, p);
	page_strips(out, p);
	if (!err)
		err = page_sections(out, p);
	objects(out, p);
	page_end(out);
	return err;
}
