/* page_strips.c - samples over time, as rows of coloured cells */
#include "page.h"

#include "symbols/short_name.h"

#define LABEL_COLUMNS 200

/* Writes a cell for each slice; @peak samples have the strongest colour. */
static void strip(FILE *out, const struct profile *p, const __u64 *slices, __u64 peak,
		  const char *label)
{
	fputs("<div class=\"strip\"><div>", out);
	for (size_t k = 0; k < p->nslices; k++) {
		if (!slices[k]) {
			fputs("<i></i>", out);
			continue;
		}
		fprintf(out, "<i title=\"%.6g s: %llu\" class=\"s%.0f\"></i>",
			(double)k * (double)p->slice_ns / 1e9, slices[k],
			10 + 90 * (double)slices[k] / (double)peak);
	}
	fputs("</div><span class=\"name\">", out);
	page_text(out, label);
	fputs("</span></div>\n", out);
}

static __u64 peak_of(const struct profile *p, const __u64 *slices, __u64 peak)
{
	for (size_t k = 0; slices && k < p->nslices; k++)
		peak = slices[k] > peak ? slices[k] : peak;
	return peak;
}

/* Writes a strip for each function that has a section. */
static void function_strips(FILE *out, const struct profile *p)
{
	__u64 peak = 1;

	for (size_t i = 0; i < p->nfunctions; i++)
		peak = peak_of(p, p->functions[i].slices, peak);
	fprintf(out, "<h2>When</h2><p>%zu slices of %.6g s; the warmest have %llu samples.</p>\n",
		p->nslices, (double)p->slice_ns / 1e9, peak);
	for (size_t i = 0; i < p->nfunctions && page_has_section(p, i); i++) {
		const struct function *f = &p->functions[i];
		char whole[4096], name[4096];

		if (!f->slices)
			continue;
		profile_function_name(p, f, whole, sizeof(whole));
		strip(out, p, f->slices, peak, fit_name(name, sizeof(name), whole, LABEL_COLUMNS));
	}
}

void page_strips(FILE *out, const struct profile *p)
{
	if (!p->nslices) {
		fputs("<p>When it was hot is not known: it takes <code>--slices</code>.</p>\n",
		      out);
		return;
	}
	function_strips(out, p);
}
