/* page_sections.c - source and instructions of the hottest functions, on the page */
#include <errno.h>

#include "base/cleanup.h"

#include "page.h"
#include "analysis/disassembly.h"
#include "analysis/line_counts.h"
#include "analysis/sample_location.h"
#include "symbols/lines_store.h"
#include "symbols/short_name.h"

/* Bounds for one file, or for one function's instructions. */
#define BOUNDS ((struct listing_bounds){ .hot = 30, .context = 3 })
#define FILES 5
#define INLINED 20
#define TEXT_COLUMNS 300

struct section {
	FILE *out;
	const struct function *function;
	bool addresses; /* the listing has instructions */
	size_t files;
	__u64 left_out; /* samples in files beyond FILES */
	int err;
};

static void share_write(const struct section *w, __u64 samples, const char *gap)
{
	double share = samples ? (double)samples / (double)w->function->samples : 0;

	if (samples)
		fprintf(w->out, "<div class=\"%ss%.0f\"><span>%.2f %%</span>", gap, 8 + 50 * share,
			100 * share);
	else
		fprintf(w->out, "<div class=\"%s\"><span></span>", gap);
}

static void cut_text(FILE *out, const char *s)
{
	char text[2 * TEXT_COLUMNS];

	snprintf(text, sizeof(text), "%s", s);
	page_text(out, fit_text(text, sizeof(text), TEXT_COLUMNS));
}

static void line_write(void *ctx, const struct listed *line)
{
	const struct section *w = ctx;

	share_write(w, line->samples, "");
	fprintf(w->out, w->addresses ? "<span>%llx:</span><span>" : "<span>%llu</span><span>",
		line->at);
	cut_text(w->out, line->text);
	fputs("</span></div>\n", w->out);
}

static void gap_write(void *ctx, size_t lines, __u64 samples)
{
	const struct section *w = ctx;

	share_write(w, samples, "gap ");
	fprintf(w->out, "<span></span><span>%zu %s%s more</span></div>\n", lines,
		w->addresses ? "instruction" : "line", lines > 1 ? "s" : "");
}

static const struct listing_writer writer = { line_write, gap_write };

static void file_write(void *ctx, const struct tally *t, size_t n)
{
	struct section *w = ctx;
	struct listing l;

	if (w->err)
		return;
	if (w->files++ >= FILES) {
		for (size_t i = 0; i < n; i++)
			w->left_out += t[i].samples;
		return;
	}
	fputs("<h3>", w->out);
	page_text(w->out, t->file);
	fputs("</h3><div class=\"code\">\n", w->out);
	w->err = tally_listing(&l, t, n);
	if (!w->err)
		w->err = listing_excerpt(&l, BOUNDS, &writer, w);
	fputs("</div>\n", w->out);
	if (!l.readable)
		fputs("<p>This file could not be read, or is another one by now.</p>\n", w->out);
	listing_fini(&l);
}

static int source(struct section *w, const struct spots *s)
{
	size_t n;
	__cleanup(freep) struct tally *t = tally_lines(s, w->function, &n);

	if (!t)
		return -ENOMEM;
	if (!n)
		fputs("<p>No line of source is known.</p>\n", w->out);
	w->addresses = false;
	w->files = 0;
	w->left_out = 0;
	tally_files(t, n, file_write, w);
	if (w->left_out)
		fprintf(w->out, "<p>%zu more files have %llu samples.</p>\n", w->files - FILES,
			w->left_out);
	return w->err;
}

/* Writes the functions that are inlined into this one. */
static int inlined(struct section *w, const struct spots *s)
{
	size_t n;
	__cleanup(freep) struct tally *t = tally_inlined(s, w->function, &n);

	if (!t)
		return -ENOMEM;
	if (n)
		fputs("<h3>Inlined here</h3><div class=\"code\">\n", w->out);
	for (size_t i = 0; i < n && i < INLINED; i++) {
		char name[4 * TEXT_COLUMNS];

		share_write(w, t[i].samples, "");
		fprintf(w->out, "<span>%llu</span><span>", t[i].samples);
		page_text(w->out, fit_name(name, sizeof(name), t[i].file, TEXT_COLUMNS));
		fputs("</span></div>\n", w->out);
	}
	if (n)
		fputs("</div>\n", w->out);
	return 0;
}

static int instructions(struct section *w, struct disassembler *d)
{
	struct listing l;
	int err = disassemble(&l, d, w->function);

	w->addresses = true;
	if (!err) {
		fputs("<details><summary>Instructions</summary><div class=\"code\">\n", w->out);
		err = listing_excerpt(&l, BOUNDS, &writer, w);
		fputs("</div></details>\n", w->out);
	} else {
		fputs("<p>Instructions take the file, as it was profiled, and objdump.</p>\n",
		      w->out);
	}
	listing_fini(&l);
	return err == -ENOMEM ? err : 0;
}

static int section(struct section *w, const struct profile *p, size_t i, const struct spots *s,
		   struct disassembler *d)
{
	char whole[4096], name[4096];
	int err;

	w->function = &p->functions[i];
	profile_function_name(p, w->function, whole, sizeof(whole));
	fprintf(w->out, "<section><h2 class=\"name\" id=\"f%zu\">", i);
	page_text(w->out, fit_name(name, sizeof(name), whole, 2 * TEXT_COLUMNS));
	fprintf(w->out, "</h2><p>%.2f %%, %llu samples, in ",
		profile_percent(p, w->function->samples), w->function->samples);
	page_text(w->out, p->objects[w->function->object].path);
	fputs("</p>\n", w->out);
	err = source(w, s);
	if (!err)
		err = inlined(w, s);
	if (!err && i < PAGE_LISTED_FUNCTIONS)
		err = instructions(w, d);
	fputs("</section>\n", w->out);
	return err;
}

int page_sections(FILE *out, const struct profile *p)
{
	__cleanup(lines_store_fini) struct lines_store lines = { .profile = p };
	struct disassembler d = { 0 };
	struct section w = { .out = out };
	struct spots s;
	int err = spots_init(&s, p, &lines);

	if (!err)
		err = disassembler_init(&d, p, &s);
	for (size_t i = 0; i < p->nfunctions && page_has_section(p, i) && !err; i++)
		err = section(&w, p, i, &s, &d);
	disassembler_fini(&d);
	spots_fini(&s);
	return err;
}
