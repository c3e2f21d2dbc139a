/* spool_page.c - the page of profil-http: the flame graph of a span of time, or of two */
#include <errno.h>
#include <string.h>

#include "diff_page.h"
#include "formats/quantity.h"
#include "page.h"
#include "page_flame.h"
#include "spool_page.h"

/* A graph that is exchanged in 200 ms; what is smaller is summed up. */
#define FLAME_BYTES 300000
#define NAMES_MAX 200 /* in a list of choices */
#define NAME_COLUMNS 200

extern const char spool_css[];

const enum rows_by spool_page_kinds[SPOOL_PAGE_KINDS] = { ROWS_UNIT, ROWS_CONTAINER, ROWS_COMMAND,
							  ROWS_PROCESS, ROWS_THREAD };

static const char *const languages[] = { "native", "kernel", "JIT" };

void spool_page_styles(FILE *out)
{
	page_styles(out);
	fputs(spool_css, out);
}

static void head(FILE *out, const struct spool_page *s)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<title>profil: ",
	      out);
	page_text(out, s->host);
	fputs("</title>\n<link rel=\"stylesheet\" href=\"page.css\">\n"
	      "<script src=\"page.js\" defer></script>\n<script src=\"strip.js\" defer></script>\n"
	      "<script src=\"flame.js\" defer></script>\n"
	      "<script src=\"spool.js\" defer></script>\n</head><body class=\"spool\">\n"
	      "<header><h1>What ran on ",
	      out);
	page_text(out, s->host);
	fputs("</h1>\n<section id=\"when\" aria-label=\"time\"></section></header>\n", out);
}

/* What spool.js draws: the strip of intervals, and the chosen spans. */
static void data(FILE *out, const struct spool_page *s)
{
	fprintf(out,
		"<script type=\"application/json\" class=\"spool-data\">{\"latest\":%s,"
		"\"unread\":%zu,\"spans\":[",
		s->latest ? "true" : "false", s->unread);
	for (size_t i = 0; i < s->spans; i++)
		fprintf(out, "%s[%lld,%lld]", i ? "," : "", (long long)s->choice[i].since,
			(long long)s->choice[i].until);
	fputs("],\"strip\":[", out);
	for (size_t i = 0; i < s->nstrip; i++) {
		fprintf(out, "%s[%lld,%lld", i ? ",\n" : "", (long long)s->strip[i].start,
			(long long)s->strip[i].seconds);
		if (s->strip[i].cpus >= 0)
			fprintf(out, ",%.3g", s->strip[i].cpus);
		fputc(']', out);
	}
	fputs("]}</script>\n", out);
}

static void option(FILE *out, const char *value, const char *text, const char *share, bool chosen)
{
	fprintf(out, "<option%s value=\"", chosen ? " selected" : "");
	page_attribute(out, value, NAME_COLUMNS);
	fputs("\">", out);
	page_attribute(out, text, NAME_COLUMNS);
	fprintf(out, "%s</option>\n", share);
}

static void select_begin(FILE *out, const char *name)
{
	fprintf(out, "<label>%s <select id=\"choose-%s\" name=\"%s\">\n", name, name, name);
}

/* Writes the names of a kind, if the profile distinguishes several. */
static int select_kind(FILE *out, const struct spool_page *s, enum rows_by by)
{
	const struct profile *p = s->range->all;
	const char *chosen = s->choice->name[by];
	bool found = false;
	struct rows rows;
	int err = rows_init(&rows, p, by);

	if (err || (rows.n < 2 && !chosen)) {
		rows_fini(&rows);
		return err == -ENOENT ? 0 : err;
	}
	select_begin(out, rows_by_name(by));
	option(out, "", "all", "", !chosen);
	for (size_t i = 0; i < rows.n && i < NAMES_MAX; i++) {
		bool is = chosen && !strcmp(rows.row[i].name, chosen);
		char share[32];

		snprintf(share, sizeof(share), " (%.1f %%)",
			 profile_percent(p, rows.row[i].samples));
		option(out, rows.row[i].name, rows.row[i].name, share, is);
		found |= is;
	}
	if (chosen && !found)
		option(out, chosen, chosen, "", true);
	fputs("</select></label>\n", out);
	rows_fini(&rows);
	return 0;
}

/* The samples of @language. */
static __u64 samples_in(const struct profile *p, const char *language)
{
	__u64 sum = 0;

	places_each(place, &p->places) {
		if (!strcmp(sums_language(&p->objects[place->object]), language))
			sum += place->count;
	}
	return sum;
}

static void option_language(FILE *out, const struct spool_page *s, const char *language)
{
	const struct profile *p = s->range->all;
	const char *chosen = s->choice->language;
	bool is = chosen && !strcmp(chosen, language);
	__u64 samples = samples_in(p, language);
	char share[32];

	snprintf(share, sizeof(share), " (%.1f %%)", profile_percent(p, samples));
	if (samples || is)
		option(out, language, language, share, is);
}

static void select_language(FILE *out, const struct spool_page *s)
{
	const char *name;

	select_begin(out, "language");
	option(out, "", "all", "", !s->choice->language);
	for (size_t i = 0; i < sizeof(languages) / sizeof(*languages); i++)
		option_language(out, s, languages[i]);
	for (__u32 i = 1; (name = interpreted_language(i)); i++)
		option_language(out, s, name);
	fputs("</select></label>\n", out);
}

/* The hidden fields let the form work without scripts. */
static int form(FILE *out, const struct spool_page *s)
{
	static const char *const names[][2] = { { "from", "to" }, { "vfrom", "vto" } };
	int err = 0;

	fputs("<form id=\"choice\" method=\"get\">\n", out);
	for (size_t i = s->latest ? 1 : 0; i < s->spans && i < sizeof(names) / sizeof(*names); i++)
		fprintf(out,
			"<input type=\"hidden\" name=\"%s\" value=\"%lld\">"
			"<input type=\"hidden\" name=\"%s\" value=\"%lld\">\n",
			names[i][0], (long long)s->choice[i].since, names[i][1],
			(long long)s->choice[i].until);
	for (size_t i = 0; i < SPOOL_PAGE_KINDS && !err; i++)
		err = select_kind(out, s, spool_page_kinds[i]);
	select_language(out, s);
	select_begin(out, "by");
	option(out, "", "code", "", !s->choice->by_unit);
	option(out, "unit", "unit, command, code", "", s->choice->by_unit);
	fputs("</select></label>\n<noscript><button>show</button></noscript></form>\n", out);
	return err;
}

static void when(char *out, size_t bytes, time_t t)
{
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(out, bytes, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(out, bytes, "%lld", (long long)t);
}

/* One line for a span. */
static void fact(FILE *out, const struct spool_page *s, size_t i, const char *name)
{
	const struct sums_range *r = &s->range[i];
	const struct profile *p = r->profile;
	char since[64], until[64], each[128];

	when(since, sizeof(since), s->choice[i].since);
	when(until, sizeof(until), s->choice[i].until);
	fprintf(out, "<p class=\"fact\">%s%s to %s UTC: %llu samples in %.6g s, ", name, since,
		until, p->total, (double)p->duration_ns / 1e9);
	if (p->duration_ns)
		fprintf(out, "%.2f CPUs, ", compare_quantity(p, p->total));
	fprintf(out, "%s", quantity_of_sample(each, sizeof(each), p));
	if (r->other_rate)
		fprintf(out, "; %zu intervals of another rate are left out", r->other_rate);
	fputs("</p>\n", out);
}

static void facts(FILE *out, const struct spool_page *s)
{
	if (s->spans < 2) {
		fact(out, s, 0, "");
	} else {
		fact(out, s, 1, "before: ");
		fact(out, s, 0, "after: ");
	}
	if (s->unread)
		fprintf(out,
			"<p class=\"unread\">%zu of %zu profiles are still to be read; the page "
			"is completed by itself.</p>\n",
			s->unread, s->intervals);
	if (s->too_old)
		fprintf(out,
			"<p class=\"unread\">%zu older profiles do not fit into memory: "
			"'profilctl report --since' reads them.</p>\n",
			s->too_old);
}

static void ends(FILE *out, const struct spool_page *s)
{
	for (size_t i = s->spans; i-- > 0;) {
		if (s->range[i].stacks)
			page_stack_ends(out, s->range[i].profile,
					s->spans < 2 ? ""
					: i	     ? "before: "
						     : "after: ");
	}
	if (!s->range->stacks)
		fputs("<p class=\"ends\">These profiles have no stacks: a function is below its "
		      "file.</p>\n",
		      out);
}

static int one(FILE *out, const struct spool_page *s)
{
	const struct profile *p = s->range->profile;
	int err = page_flame(out, p, NULL, FLAME_BYTES);

	if (err)
		return err;
	ends(out, s);
	return page_table(out, p, false);
}

static int two(FILE *out, const struct spool_page *s)
{
	const struct profile *before = s->range[1].profile, *after = s->range[0].profile;
	struct changes c;
	int err = compare_init(&c, before, after) ?: page_flame(out, before, after, FLAME_BYTES);

	if (!err) {
		ends(out, s);
		diff_page_facts(out, before, after, &c);
		diff_page_table(out, before, after, &c);
	}
	compare_fini(&c);
	return err;
}

static void paragraph(FILE *out, const char *class, const char *text)
{
	fprintf(out, "<p class=\"%s\">", class);
	page_text(out, text);
	fputs("</p>\n", out);
}

static int view(FILE *out, const struct spool_page *s)
{
	bool empty = false;
	int err;

	if (s->trouble) {
		paragraph(out, "trouble", s->trouble);
		return 0;
	}
	err = form(out, s);
	if (err)
		return err;
	if (s->notice)
		paragraph(out, "ends", s->notice);
	facts(out, s);
	for (size_t i = 0; i < s->spans; i++)
		empty |= !s->range[i].profile->total;
	if (!empty)
		return s->spans < 2 ? one(out, s) : two(out, s);
	paragraph(out, "trouble", "There are no such samples in this time.");
	return 0;
}

int spool_page_write(FILE *out, const struct spool_page *s)
{
	int err;

	head(out, s);
	fputs("<main id=\"view\">\n", out);
	data(out, s);
	err = view(out, s);
	fputs("</main>\n<noscript><p>Scripts draw the graph. The table is complete without them; "
	      "?from=SECONDS&amp;to=SECONDS chooses the time.</p></noscript>\n"
	      "<footer><a href=\"debug/pprof/\">pprof</a> <a href=\"metrics\">metrics</a>"
	      "</footer>\n</body></html>\n",
	      out);
	return err;
}
