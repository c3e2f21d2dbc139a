/* diff.c - prints the changes between two profiles */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/log.h"
#include "base/cleanup.h"

#include "formats/quantity.h"
#include "analysis/compare.h"
#include "formats/format.h"
#include "profile/json_name.h"
#include "profilctl/output/output.h"
#include "formats/page/diff_page.h"
#include "symbols/short_name.h"
#include "load_operands.h"
#include "base/sanitize.h"
#include "profilctl/util/terminal.h"
#include "diff.h"
#include "verb.h"

/* Limits for functions without a significant change: their number, and the least share of each. */
#define OTHERS_MAX 20
#define OTHERS_PERCENT 0.5

#define NAME_COLUMNS_MIN 22
#define OBJECT_COLUMNS 16

static void which(FILE *out, const char *side, const struct profile *p)
{
	char command[4096], all[256];

	fprintf(out, "%s: %s, %llu samples, %s\n", side,
		sanitize(command, sizeof(command), p->command), p->total,
		quantity_of_all(all, sizeof(all), p));
}

/* The layout of the table. */
struct table {
	FILE *out;
	bool interval;
	bool full_names;
	size_t name_columns;
	const struct profile *profile[2];
	const char *unit; /* of compare_quantity(); NULL: it is not shown */
};

#define QUANTITY_COLUMNS 30

static void row(const struct table *t, const struct change *o)
{
	char name[4096], fits[4096], object[256];

	fprintf(t->out, "%c %6.2f  %6.2f  %+7.2f  ", o->significant ? '*' : ' ', o->percent[0],
		o->percent[1], o->percent[1] - o->percent[0]);
	if (t->interval)
		fprintf(t->out, "%+6.2f..%+6.2f  ", o->low, o->high);
	sanitize(name, sizeof(name), o->name);
	if (t->full_names)
		strcpy(fits, name);
	else
		fit_name(fits, sizeof(fits), name, t->name_columns);
	if (t->unit) {
		double a = compare_quantity(t->profile[0], o->samples[0]);
		double b = compare_quantity(t->profile[1], o->samples[1]);

		fprintf(t->out, "%8.3f  %8.3f  %+8.3f  ", a, b, b - a);
	}
	fprintf(t->out, "%s%*s  %s\n", fits,
		columns_of(fits) < t->name_columns ? (int)(t->name_columns - columns_of(fits)) : 0,
		"", sanitize(object, sizeof(object), o->object));
}

/* Chooses all significant changes and the largest others. The caller frees the array. */
static const struct change **choose(const struct options *o, const struct changes *c, size_t *n)
{
	double limit = o->least_percent > 0 ? o->least_percent : o->rows ? 0 : OTHERS_PERCENT;
	const struct change **chosen = calloc(c->n + 1, sizeof(*chosen));
	size_t others = 0;

	*n = 0;
	for (size_t i = 0; chosen && i < c->n && (!o->rows || *n < o->rows); i++) {
		const struct change *x = &c->change[i];
		bool small = x->percent[0] < limit && x->percent[1] < limit;

		if (!o->all && !x->significant && (small || (!o->rows && others == OTHERS_MAX)))
			continue;
		others += !x->significant;
		chosen[(*n)++] = x;
	}
	return chosen;
}

static void lay_out(struct table *t, const struct options *o, const struct changes *c,
		    const struct change **chosen, size_t n)
{
	size_t columns =
		terminal_columns(STDOUT_FILENO) ? terminal_columns(STDOUT_FILENO) : TEXT_COLUMNS;
	size_t used, widest = NAME_COLUMNS_MIN;

	t->full_names = o->full_names;
	t->interval = columns >= 110 && c->sampled;
	used = OBJECT_COLUMNS + (t->interval ? 46 : 30) + (t->unit ? QUANTITY_COLUMNS : 0);
	t->name_columns = columns > used + NAME_COLUMNS_MIN ? columns - used : NAME_COLUMNS_MIN;
	for (size_t i = 0; i < n; i++) {
		char name[4096];

		fit_name(name, sizeof(name), chosen[i]->name, t->name_columns);
		widest = columns_of(name) > widest ? columns_of(name) : widest;
	}
	t->name_columns = widest;
}

static int text(FILE *out, const struct options *o, const struct profile *a,
		const struct profile *b, const struct changes *c)
{
	struct table t = { .out = out, .profile = { a, b }, .unit = compare_unit(a, b) };
	char quantity[64] = "";
	size_t n;
	__cleanup(freep) const struct change **chosen = choose(o, c, &n);

	if (!chosen)
		return -ENOMEM;
	which(out, "A", a);
	which(out, "B", b);
	lay_out(&t, o, c, chosen, n);
	if (t.unit)
		snprintf(quantity, sizeof(quantity), "%*s%s  %*s%s    change  ",
			 8 - (int)strlen(t.unit), "A ", t.unit, 8 - (int)strlen(t.unit), "B ",
			 t.unit);
	fprintf(out, "\n     A %%     B %%   change  %s%s%-*s  object\n",
		t.interval ? "  99 % of all   " : "", quantity, (int)t.name_columns, "function");
	for (size_t i = 0; i < n; i++)
		row(&t, chosen[i]);
	if (n < c->n)
		fprintf(out, "  ... %zu more\n", c->n - n);
	if (!c->sampled) {
		fputs("\nthe samples of a sleep depend on each other: no change is judged\n", out);
		return 0;
	}
	if (c->significant)
		fprintf(out, "\n%zu of %zu functions changed (*): the interval excludes 0\n",
			c->significant, c->tested);
	else
		fprintf(out,
			"\nnone of %zu functions changed: all differences may be chance, as every "
			"interval contains 0\n",
			c->tested);
	fprintf(out, "all intervals are right at once in %g %% of comparisons\n",
		100 - 100 * COMPARE_ERROR);
	return 0;
}

static json_t *change_json(const struct change *o, const struct profile *a, const struct profile *b)
{
	double a_s = (double)o->samples[0] * (double)a->tick_ns / 1e9;
	double b_s = (double)o->samples[1] * (double)b->tick_ns / 1e9;
	json_t *change =
		json_pack("{so so s[II] s[ff] s[ff] sf sb}", "name", jsonname(o->name), "object",
			  jsonname(o->object), "samples", (json_int_t)o->samples[0],
			  (json_int_t)o->samples[1], "percent", o->percent[0], o->percent[1],
			  "interval", o->low, o->high, "p", o->p, "significant", o->significant);

	if (change && a->tick_ns &&
	    json_object_set_new(change, "seconds", json_pack("[ff]", a_s, b_s)))
		json_decref(steal(change));
	return change;
}

static int json(FILE *out, const struct profile *a, const struct profile *b,
		const struct changes *c)
{
	json_t *all = json_array();
	json_auto_t *root = NULL;
	int err = 0;

	for (size_t i = 0; i < c->n; i++)
		err |= json_array_append_new(all, change_json(&c->change[i], a, b));
	root = json_pack("{ss s[oo] s[II] sI so}", "schema", "profil-diff/1", "commands",
			 jsonname(a->command), jsonname(b->command), "total", (json_int_t)a->total,
			 (json_int_t)b->total, "tested", (json_int_t)c->tested, "functions", all);
	if (!root || err)
		return -ENOMEM;
	if (json_dumpf(root, out, JSON_COMPACT | JSON_REAL_PRECISION(7)) < 0)
		return -EIO;
	fputc('\n', out);
	return 0;
}

static bool is_text(const struct options *o)
{
	return !o->format || !o->format->write;
}

static bool is_html(const struct options *o)
{
	return o->format && o->format->write == html_write;
}

int diff_check(const struct options *o)
{
	if (is_text(o) || is_html(o) || o->format == format_find("json"))
		return CTL_OK;
	log_err("%s: no format %s of two profiles: take text, json or html", o->verb,
		o->format->name);
	return CTL_USAGE;
}

int diff_write(FILE *out, const struct options *o, const struct profile *a, const struct profile *b)
{
	struct changes c;
	int err = compare_init(&c, a, b)
			  ?: (is_text(o)   ? text(out, o, a, b, &c)
			      : is_html(o) ? diff_page_write(out, a, b, &c)
					   : json(out, a, b, &c));

	compare_fini(&c);
	return err;
}

/* The function whose share has grown most, by as much as makes --fail-on fail; NULL: none. */
static const struct change *most_grown(const struct options *o, const struct changes *c, size_t *n)
{
	const struct change *most = NULL;

	*n = 0;
	for (size_t i = 0; i < c->n; i++) {
		const struct change *x = &c->change[i];
		double by = x->percent[1] - x->percent[0];

		if (!x->significant || by < o->fail_percent)
			continue;
		++*n;
		if (!most || by > most->percent[1] - most->percent[0])
			most = x;
	}
	return most;
}

/* Judges the changes by --fail-on. Prints a message and returns an enum ctl_status. */
static int judge(const struct options *o, const struct profile *a, const struct profile *b)
{
	const struct change *most;
	struct changes c;
	char name[4096];
	size_t n;
	int err, status = CTL_OK;

	if (!o->fail_percent)
		return CTL_OK;
	err = compare_init(&c, a, b);
	most = err ? NULL : most_grown(o, &c, &n);
	if (err < 0 || !c.sampled) {
		log_err("diff: --fail-on: %s", err < 0 ? strerror(-err)
						       : "the samples of a sleep depend on each "
							 "other: no change is judged");
		status = err < 0 ? CTL_ERROR : CTL_USAGE;
	} else if (most) {
		log_err("diff: the share of %zu function%s grew by %g points or more, most of all "
			"%s: "
			"from %.2f to %.2f %%",
			n, n == 1 ? "" : "s", o->fail_percent,
			sanitize(name, sizeof(name), most->name), most->percent[0],
			most->percent[1]);
		status = CTL_GROWN;
	}
	compare_fini(&c);
	return status;
}

static const char *event_of(const struct profile *p)
{
	return p->event ? p->event : "CPU time";
}

/*
 * Loads both profiles. Of a spool, files that cannot be read are skipped with a message:
 * CTL_PARTIAL.
 */
static int load(struct profile **a, struct profile **b, const struct options *o)
{
	int status = load_operands(a, o, o->argv, 1), partial = status;

	if (!status || status == CTL_PARTIAL)
		status = load_operands(b, o, o->argv + 1, 1);
	if (status && status != CTL_PARTIAL)
		return status;
	if (!quantity_is_same(*a, *b)) {
		log_err("diff: %s has samples of %s, %s of %s", o->argv[0], event_of(*a),
			o->argv[1], event_of(*b));
		return CTL_USAGE;
	}
	if ((*a)->binned && (*b)->binned)
		return partial ? partial : status;
	log_err("diff: %s has no samples; profile it for longer, or at a higher rate",
		o->argv[(*a)->binned ? 1 : 0]);
	return CTL_ERROR;
}

int verb_diff(const struct options *o)
{
	__cleanup(profile_freep) struct profile *a = NULL;
	__cleanup(profile_freep) struct profile *b = NULL;
	struct options to = *o;
	FILE *out;
	int status, partial;

	if (o->argc != 2) {
		log_err("diff: needs two files, folders, quoted patterns or times: 'profilctl diff "
			"BEFORE AFTER', 'diff \"*/before.gz\" \"*/after.gz\"', or 'diff "
			"02:00..03:00 03:00..04:00'");
		return CTL_USAGE;
	}
	if (!o->format) /* two profiles have no format for a file */
		to.format = format_find("text");
	status = diff_check(&to);
	if (!status)
		status = load(&a, &b, &to);
	partial = status == CTL_PARTIAL ? status : CTL_OK;
	if (!status || partial)
		status = output_open(&out, &to);
	if (status)
		return status;
	if (is_text(&to) && out == stdout)
		pager_begin();
	status = output_end(out, &to, diff_write(out, &to, a, b));
	pager_end();
	if (!status)
		status = judge(&to, a, b);
	return status ? status : partial;
}
