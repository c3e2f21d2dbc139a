/* html.c - a profile as a page of its own, which needs no network and no script to be read */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "core/scope.h"

#include "format.h"
#include "interval.h"
#include "listing.h"
#include "spots.h"
#include "tally.h"

/* Of so many functions the source is shown, and the instructions, if they have this share. */
#define SOURCE_FUNCTIONS 40
#define LISTED_FUNCTIONS 10
#define SOURCE_PERCENT 0.5

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; "
	"style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
	"<meta name=\"viewport\" content=\"width=device-width\">\n"
	"<link rel=\"icon\" href=\"data:,\">\n<style>\n"
	":root{color-scheme:light "
	"dark;--fg:#1b1b1b;--bg:#fff;--dim:#666;--line:#ddd;--hot:224,72,32}\n"
	"@media(prefers-color-scheme:dark){:root{--fg:#e4e4e4;--bg:#16181b;--dim:#9a9a9a;--line:#"
	"333;"
	"--hot:255,112,64}}\n"
	"body{font:15px/1.45 system-ui,sans-serif;color:var(--fg);background:var(--bg);margin:2em "
	"auto;"
	"max-width:72em;padding:0 1em}\n"
	"h1{font-size:1.3em;overflow-wrap:anywhere}h2{font-size:1.05em;margin-top:2em;overflow-"
	"wrap:anywhere}"
	"p,dt,caption,.dim{color:var(--dim)}a{color:inherit}\n"
	"dl{display:grid;grid-template-columns:max-content 1fr;gap:.1em "
	"1em}dd{margin:0;overflow-wrap:anywhere}\n"
	"table{border-collapse:collapse;width:100%}th,td{padding:.15em "
	".6em;text-align:right;white-space:nowrap}"
	"th{border-bottom:2px solid var(--line);cursor:default}th button{all:unset;cursor:pointer}"
	"th button:focus-visible{outline:2px solid}\n"
	"tr{border-bottom:1px solid var(--line)}td{font-variant-numeric:tabular-nums}"
	".name,.object{text-align:left;white-space:normal;overflow-wrap:anywhere}\n"
	"[aria-sort=ascending]::after{content:' \\2191'}[aria-sort=descending]::after{content:' "
	"\\2193'}\n"
	"pre{font:13px/1.5 ui-monospace,monospace;overflow-x:auto;border:1px solid "
	"var(--line);padding:.5em 0}"
	"pre span{display:block;padding:0 .6em;tab-size:8}\n"
	".strip{display:flex;height:1.4em;border-bottom:1px solid var(--line)}.strip i{flex:1 1 0}"
	".strip span{flex:0 0 18em;padding-left:.6em;overflow:hidden;white-space:nowrap;"
	"text-overflow:ellipsis}\n"
	".band .strip{height:1.2em;border:0;font-size:.75em;line-height:1.2}.band .strip "
	"i{margin:0 1px 1px 0}"
	".band .strip span{flex-basis:24em}\n"
	"</style>\n";

/* Sorts by what stands in data-v, the greatest first, or by the text. */
static const char script[] =
	"<script>\n"
	"document.querySelectorAll('th').forEach((th,i)=>{const b=document.createElement('button');"
	"b.textContent=th.textContent;th.textContent='';th.append(b);b.onclick=()=>{"
	"const body=document.querySelector('tbody'),now=th.getAttribute('aria-sort'),"
	"up=now?now==='descending':body.rows[0]?.cells[i].dataset.v===undefined,"
	"key=r=>{const c=r.cells[i],v=c.dataset.v;return v===undefined?c.textContent:+v},"
	"rows=[...body.rows].sort((x,y)=>{const "
	"a=key(x),c=key(y);return(a<c?-1:a>c?1:0)*(up?1:-1)});"
	"document.querySelectorAll('th').forEach(t=>t.removeAttribute('aria-sort'));"
	"th.setAttribute('aria-sort',up?'ascending':'descending');body.append(...rows)}});\n"
	"</script>\n";

struct page {
	FILE *out;
	const struct profile *profile;
	const struct function *function; /* whose source is being written */
};

/* Nothing of a name is markup. */
static void escaped(FILE *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '<')
			fputs("&lt;", out);
		else if (*s == '>')
			fputs("&gt;", out);
		else if (*s == '&')
			fputs("&amp;", out);
		else if (*s == '"')
			fputs("&quot;", out);
		else
			fputc((unsigned char)*s < ' ' && *s != '\t' ? ' ' : *s, out);
	}
}

static void fact(FILE *out, const char *what, const char *value)
{
	fprintf(out, "<dt>%s</dt><dd>", what);
	escaped(out, value);
	fputs("</dd>\n", out);
}

static void provenance(FILE *out, const struct profile *p)
{
	char text[256];
	struct tm tm;

	fputs("<dl>\n", out);
	gmtime_r(&p->started, &tm);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm);
	fact(out, "begun", text);
	snprintf(text, sizeof(text), "%.2f s", (double)p->duration_ns / 1e9);
	fact(out, "duration", text);
	snprintf(text, sizeof(text), "%.6g Hz, a tick is %.6g ms of CPU time",
		 p->tick_ns ? 1e9 / (double)p->tick_ns : 0, (double)p->tick_ns / 1e6);
	fact(out, "rate", text);
	snprintf(text, sizeof(text),
		 "%llu: %llu binned, %llu unmatched, %llu lost; %llu counters saturated", p->total,
		 p->binned, p->unmatched, p->lost, p->saturated);
	fact(out, "samples", text);
	snprintf(text, sizeof(text), "process %d, profilctl " PROFIL_VERSION, (int)p->pid);
	fact(out, "from", text);
	fputs("</dl>\n", out);
}

/* What has source to show, and a place on the page. */
static bool is_shown(const struct profile *p, size_t i)
{
	return i < SOURCE_FUNCTIONS &&
	       profile_percent(p, p->functions[i].samples) >= SOURCE_PERCENT;
}

static void row(FILE *out, const struct profile *p, const char *link, const char *name,
		const char *object, __u64 samples)
{
	double percent = profile_percent(p, samples);
	struct interval i = interval_of(samples, p->total);

	fprintf(out, "<tr><td data-v=\"%llu\" style=\"background:rgba(var(--hot),%.3f)\">%.2f",
		samples, percent > 50 ? 0.7 : percent / 50 * 0.7, percent);
	fprintf(out, "<td data-v=\"%f\">%.1f&ndash;%.1f<td data-v=\"%llu\">%llu", i.low, i.low,
		i.high, samples, samples);
	fprintf(out, "<td data-v=\"%llu\">%.3f<td class=\"name\">", samples,
		(double)samples * (double)p->tick_ns / 1e9);
	if (*link)
		fprintf(out, "<a href=\"#%s\">", link);
	escaped(out, name);
	fputs(*link ? "</a><td class=\"object\">" : "<td class=\"object\">", out);
	escaped(out, object);
	fputs("</tr>\n", out);
}

static void table(FILE *out, const struct profile *p)
{
	fputs("<table><thead><tr><th aria-sort=\"descending\">self %<th>95 % of it<th>samples"
	      "<th>seconds<th class=\"name\">function<th class=\"object\">object</tr></thead>"
	      "<tbody>\n",
	      out);
	for (size_t i = 0; i < p->nfunctions; i++) {
		const struct function *f = &p->functions[i];
		char name[4096], link[32] = "";

		if (is_shown(p, i))
			snprintf(link, sizeof(link), "f%zu", i);
		row(out, p, link, profile_function_name(p, f, name, sizeof(name)),
		    p->objects[f->object].path, f->samples);
	}
	if (p->unmatched)
		row(out, p, "", "(in no mapping)", "", p->unmatched);
	if (p->lost)
		row(out, p, "", "(lost)", "", p->lost);
	fputs("</tbody></table>\n", out);
}

/* A row of cells, the samples of each slice; @peak samples show strongest. */
static void strip(FILE *out, const struct profile *p, const __u64 *slices, __u64 peak,
		  const char *label)
{
	fputs("<div class=\"strip\">", out);
	for (size_t k = 0; k < p->nslices; k++) {
		if (!slices[k]) {
			fputs("<i></i>", out);
			continue;
		}
		fprintf(out,
			"<i title=\"%.6g s: %llu\" style=\"background:rgba(var(--hot),%.3f)\"></i>",
			(double)k * (double)p->slice_ns / 1e9, slices[k],
			0.1 + 0.9 * (double)slices[k] / (double)peak);
	}
	fputs("<span>", out);
	escaped(out, label);
	fputs("</span></div>\n", out);
}

static __u64 peak_of(const struct profile *p, const __u64 *slices, __u64 peak)
{
	for (size_t k = 0; slices && k < p->nslices; k++)
		peak = slices[k] > peak ? slices[k] : peak;
	return peak;
}

/* A strip of time for each of the functions that are shown. */
static void function_strips(FILE *out, const struct profile *p)
{
	__u64 peak = 1;

	for (size_t i = 0; i < p->nfunctions; i++)
		peak = peak_of(p, p->functions[i].slices, peak);
	fprintf(out, "<h2>When</h2><p>%zu slices of %.6g s; the strongest are %llu samples</p>\n",
		p->nslices, (double)p->slice_ns / 1e9, peak);
	for (size_t i = 0; i < p->nfunctions && is_shown(p, i); i++) {
		const struct function *f = &p->functions[i];
		char name[4096];

		if (f->slices)
			strip(out, p, f->slices, peak,
			      profile_function_name(p, f, name, sizeof(name)));
	}
}

/* The function of a band that has the most samples: they stand in that order. */
static const struct function *hottest(const struct profile *p, const struct band *b)
{
	for (size_t i = 0; i < p->nfunctions; i++) {
		const struct function *f = &p->functions[i];

		if (f->object == b->object && f->offset < b->offset + b->bytes &&
		    b->offset < f->offset + f->size)
			return f;
	}
	return NULL;
}

/* A strip of time for each band of addresses, the lowest on top. */
static void band_strips(FILE *out, const struct profile *p)
{
	__u64 peak = 1;

	for (size_t i = 0; i < p->nbands; i++)
		peak = peak_of(p, p->bands[i].slices, peak);
	fprintf(out,
		"<h2>Where and when</h2><p>addresses from top to bottom, %llu bytes a row, time "
		"from left to "
		"right; the strongest are %llu samples</p>\n<div class=\"band\">",
		p->nbands ? p->bands[0].bytes : 0, peak);
	for (size_t i = 0; i < p->nbands; i++) {
		const struct band *b = &p->bands[i];
		const struct function *f = hottest(p, b);
		char name[4096] = "", label[4352];

		if (f)
			profile_function_name(p, f, name, sizeof(name));
		snprintf(label, sizeof(label), "%.64s+0x%llx %s",
			 profile_base_name(p->objects[b->object].path), b->offset,
			 f && f->name ? name : "");
		strip(out, p, b->slices, peak, label);
	}
	fputs("</div>\n", out);
}

static void strips(FILE *out, const struct profile *p)
{
	if (!p->nslices) {
		fputs("<p>When it was hot is not known: it takes <code>--slices</code>.</p>\n",
		      out);
		return;
	}
	function_strips(out, p);
	if (p->nbands)
		band_strips(out, p);
}

static void objects(FILE *out, const struct profile *p)
{
	fputs("<details><summary>files and their build ids</summary><dl>\n", out);
	for (size_t i = 0; i < p->nobjects; i++) {
		const struct object *o = &p->objects[i];

		fputs("<dt>", out);
		escaped(out, o->path);
		fprintf(out, "</dt><dd>%s</dd>\n", *o->build_id ? o->build_id : "none");
	}
	fputs("</dl></details>\n", out);
}

static void line_write(void *ctx, int line, const char *text, __u64 samples)
{
	const struct page *w = ctx;
	double share = samples ? (double)samples / (double)w->function->samples : 0;

	if (!line) {
		fputs("<span class=\"dim\">...</span>", w->out);
		return;
	}
	if (samples)
		fprintf(w->out, "<span style=\"background:rgba(var(--hot),%.3f)\">%6.2f %%",
			0.1 + 0.6 * share, 100 * share);
	else
		fputs("<span>        ", w->out);
	fprintf(w->out, " %5d  ", line);
	escaped(w->out, text ? text : "");
	fputs("</span>", w->out);
}

static void file_write(void *ctx, const struct tally *t, size_t n)
{
	const struct page *w = ctx;

	fputs("<p>", w->out);
	escaped(w->out, t->file);
	fputs("</p><pre>", w->out);
	if (tally_source(t, n, line_write, ctx) < 0)
		fputs("<span class=\"dim\">this file could not be read</span>", w->out);
	fputs("</pre>\n", w->out);
}

static void instruction_write(void *ctx, const char *text, __u64 samples)
{
	const struct page *w = ctx;
	double share = samples ? (double)samples / (double)w->function->samples : 0;

	if (samples)
		fprintf(w->out, "<span style=\"background:rgba(var(--hot),%.3f)\">%6.2f %% ",
			0.1 + 0.6 * share, 100 * share);
	else
		fputs("<span>         ", w->out);
	escaped(w->out, text);
	fputs("</span>", w->out);
}

static void instructions(struct page *w, const struct spots *s)
{
	fputs("<details><summary>instructions</summary><pre>", w->out);
	if (listing_show(w->profile, w->function, s, instruction_write, w) < 0)
		fputs("<span class=\"dim\">they take the file, and objdump</span>", w->out);
	fputs("</pre></details>\n", w->out);
}

/* What the compiler has put into the function. */
static int inlined(struct page *w, const struct spots *s)
{
	size_t n;
	__cleanup(freep) struct tally *t = tally_inlined(s, w->function, &n);

	if (!t)
		return -ENOMEM;
	if (n)
		fputs("<p>inlined here</p><pre>", w->out);
	for (size_t i = 0; i < n; i++)
		instruction_write(w, t[i].file, t[i].samples);
	if (n)
		fputs("</pre>\n", w->out);
	return 0;
}

static int sources(struct page *w, const struct spots *s)
{
	const struct profile *p = w->profile;

	for (size_t i = 0; i < p->nfunctions && is_shown(p, i); i++) {
		size_t n;
		__cleanup(freep) struct tally *t = tally_lines(s, &p->functions[i], &n);
		char name[4096];

		if (!t)
			return -ENOMEM;
		w->function = &p->functions[i];
		fprintf(w->out, "<h2 id=\"f%zu\">", i);
		escaped(w->out, profile_function_name(p, w->function, name, sizeof(name)));
		fputs("</h2>\n", w->out);
		if (!n)
			fputs("<p>no line of source is known</p>\n", w->out);
		tally_files(t, n, file_write, w);
		if (inlined(w, s) < 0)
			return -ENOMEM;
		if (i < LISTED_FUNCTIONS)
			instructions(w, s);
	}
	return 0;
}

int html_write(FILE *out, const struct profile *p)
{
	struct page w = { .out = out, .profile = p };
	struct spots s;
	int err = spots_init(&s, p, true);

	if (!err) {
		fputs(head, out);
		fputs("<title>", out);
		escaped(out, p->command);
		fputs("</title></head><body>\n<h1>", out);
		escaped(out, p->command);
		fputs("</h1>\n", out);
		provenance(out, p);
		table(out, p);
		strips(out, p);
		err = sources(&w, &s);
		objects(out, p);
		fputs(script, out);
		fputs("</body></html>\n", out);
	}
	spots_fini(&s);
	return err;
}
