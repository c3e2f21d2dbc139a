/* hot.c - the hottest functions as JSON, for the page */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amounts.h"
#include "base/cleanup.h"
#include "hot.h"
#include "analysis/function_rows.h"
#include "locations.h"
#include "base/utf8.h"
#include "symbols/short_name.h"

#define FUNCTIONS_MAX 300
#define RUNS_MAX 300
#define NAME_COLUMNS 72 /* of the page */

/* A name with any bytes as JSON; NULL: null. */
static json_t *text(const char *s)
{
	__cleanup(freep) char *copy = NULL;

	if (!s)
		return json_null();
	if (!utf8_is_valid(s))
		copy = utf8_copy(s);
	return json_string(copy ? copy : s);
}

/* The unit that ran all samples of an object; NULL: several did, or it is unknown. */
static const char *only_unit(const struct owner *o)
{
	return o->unit ? o->unit : o->cgroup ? NO_UNIT : NULL;
}

/* The functions of @p, which are sorted, in the names of a report. */
static json_t *functions(const struct profile *p, const struct difference *d)
{
	struct function_rows rows;
	json_t *out = function_rows_init(&rows, p) ? NULL : json_array();
	char name[4096], shown[4096];

	for (size_t i = 0; out && i < rows.n && i < FUNCTIONS_MAX; i++) {
		const struct function *f = rows.row[i].function;

		profile_function_name(p, f, name, sizeof(name));
		fit_name(shown, sizeof(shown), f->name ? name : profile_base_name(name),
			 NAME_COLUMNS);
		json_array_append_new(out, json_pack("{so so so so sI}", "name", text(name),
						     "short", text(shown), "object",
						     text(p->objects[f->object].path), "unit",
						     text(only_unit(&d->owner[f->object])),
						     "samples", (json_int_t)rows.row[i].samples));
	}
	function_rows_fini(&rows);
	return out;
}

static int by_count(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->count > y->count ? -1 : x->count < y->count;
}

/* Samples by unit, command and file. */
static json_t *runs(const struct profile *p, const struct difference *d)
{
	__cleanup(freep) struct place *sum = places_sorted(&d->sums);
	json_t *out = json_array();

	if (sum)
		qsort(sum, d->sums.n, sizeof(*sum), by_count);
	for (size_t i = 0; sum && i < d->sums.n && i < RUNS_MAX; i++) {
		const struct group *g = &p->groups[sum[i].group];

		if (!sum[i].group)
			continue;
		json_array_append_new(out, json_pack("{so so so so sI}", "unit", text(unit_name(g)),
						     "command", text(g->command), "cgroup",
						     text(g->cgroup), "object",
						     text(p->objects[sum[i].object].path),
						     "samples", (json_int_t)sum[i].count));
	}
	return out;
}

static json_t *units(const struct profile *p, const struct difference *d)
{
	size_t n;
	__cleanup(freep) struct amount *a = amounts_by_unit(p, d, &n);
	json_t *out = json_object();

	for (size_t i = 0; a && i < n; i++) {
		__cleanup(freep) char *copy =
			utf8_is_valid(a[i].name) ? NULL : utf8_copy(a[i].name);
		const char *name = copy ? copy : a[i].name;
		json_int_t before = json_integer_value(json_object_get(out, name));

		json_object_set_new(out, name, json_integer(before + (json_int_t)a[i].samples));
	}
	return out;
}

int hot_answer(struct answer **out, struct names *n, const struct difference *d,
	       const struct host_identity *host)
{
	const struct profile *p = n->profile;
	struct locations at;
	json_t *root = NULL;
	char *bytes = NULL;
	int err = locations_init(&at, n, &d->places);

	if (!err)
		root = json_pack(
			"{ss so ss sI sI si s{sI sI sI sI} so so so}", "schema", "profil-hot/1",
			"host", text(host->name), "kernel", host->kernel, "duration_ns",
			(json_int_t)d->duration_ns, "tick_ns", (json_int_t)d->to->head.period_ns,
			"cpus", (int)sysconf(_SC_NPROCESSORS_ONLN), "samples", "total",
			(json_int_t)d->outcomes.total, "placed", (json_int_t)d->outcomes.placed,
			"unmatched", (json_int_t)d->outcomes.unmatched, "lost",
			(json_int_t)d->outcomes.lost, "units", units(p, d), "functions",
			functions(at.profile, d), "runs", runs(p, d));
	if (root)
		bytes = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	locations_fini(&at);
	*out = bytes ? answer_new(200, "application/json", bytes, strlen(bytes)) : NULL;
	return *out ? 0 : -ENOMEM;
}
