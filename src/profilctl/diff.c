/* diff.c - says what changed between two profiles that were kept */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "core/log.h"
#include "core/scope.h"

#include "clean.h"
#include "compare.h"
#include "jsonname.h"
#include "load.h"
#include "output.h"
#include "verb.h"

static void which(FILE *out, const char *side, const struct profile *p)
{
	char command[4096];

	fprintf(out, "%s: %s, %llu samples, %.2f s of CPU time\n", side,
		clean(command, sizeof(command), p->command), p->total,
		(double)p->total * (double)p->tick_ns / 1e9);
}

static void row(FILE *out, const struct change *o)
{
	char name[1024], object[256];

	fprintf(out, "%7.2f  %7.2f  %+7.2f  %+6.2f..%+6.2f  %-24s  %s\n", o->percent[0],
		o->percent[1], o->percent[1] - o->percent[0], o->low, o->high,
		clean(name, sizeof(name), o->name), clean(object, sizeof(object), o->object));
}

static int text(FILE *out, const struct profile *a, const struct profile *b,
		const struct changes *c)
{
	which(out, "A", a);
	which(out, "B", b);
	if (c->significant) {
		fprintf(out, "\n    A %%      B %%   change    95 %% of it     %-24s  object\n",
			"function");
		for (size_t i = 0; i < c->significant; i++)
			row(out, &c->change[i]);
		fprintf(out, "\n%zu of %zu functions changed; ", c->significant, c->tested);
	} else {
		fprintf(out, "\nnone of %zu functions changed; ", c->tested);
	}
	fprintf(out, "by chance alone any would seem to have in %g %% of cases\n",
		100 * COMPARE_ERROR);
	return 0;
}

static json_t *change_json(const struct change *o)
{
	return json_pack("{so so s[II] s[ff] s[ff] sf sb}", "name", jsonname(o->name), "object",
			 jsonname(o->object), "samples", (json_int_t)o->samples[0],
			 (json_int_t)o->samples[1], "percent", o->percent[0], o->percent[1],
			 "interval", o->low, o->high, "p", o->p, "significant", o->significant);
}

static int json(FILE *out, const struct profile *a, const struct profile *b,
		const struct changes *c)
{
	json_t *all = json_array();
	json_auto_t *root = NULL;

	for (size_t i = 0; i < c->n; i++)
		json_array_append_new(all, change_json(&c->change[i]));
	root = json_pack("{ss s[oo] s[II] sI so}", "schema", "profil-diff/1", "commands",
			 jsonname(a->command), jsonname(b->command), "total", (json_int_t)a->total,
			 (json_int_t)b->total, "tested", (json_int_t)c->tested, "functions", all);
	if (!root)
		return -ENOMEM;
	if (json_dumpf(root, out, JSON_COMPACT | JSON_REAL_PRECISION(7)) < 0)
		return -EIO;
	fputc('\n', out);
	return 0;
}

static int compare(FILE *out, const struct options *o, const struct profile *a,
		   const struct profile *b)
{
	struct changes c;
	int err = compare_init(&c, a, b);

	if (!err)
		err = o->format ? json(out, a, b, &c) : text(out, a, b, &c);
	compare_fini(&c);
	return err;
}

int verb_diff(const struct options *o)
{
	__cleanup(profile_freep) struct profile *a = NULL;
	__cleanup(profile_freep) struct profile *b = NULL;
	int status;

	if (o->argc != 2) {
		log_err("diff: two files, please; 'profilctl diff BEFORE AFTER'");
		return CTL_USAGE;
	}
	status = load_profile(&a, o->argv[0]);
	if (!status)
		status = load_profile(&b, o->argv[1]);
	if (status)
		return status;
	if (!a->binned || !b->binned) {
		log_err("diff: %s has no samples; profile it for longer, or at a higher rate",
			o->argv[a->binned ? 1 : 0]);
		return CTL_ERROR;
	}
	return output_end(stdout, o, compare(stdout, o, a, b));
}
