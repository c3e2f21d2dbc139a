/* annotate.c - the source and the instructions of a function, with their samples */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/scope.h"

#include "clean.h"
#include "listing.h"
#include "load.h"
#include "output.h"
#include "spots.h"
#include "tally.h"
#include "verb.h"

struct annotation {
	FILE *out;
	const struct function *function;
};

static void columns(FILE *out, const struct function *f, __u64 samples)
{
	if (samples)
		fprintf(out, "%9llu %6.2f %%  ", samples,
			100 * (double)samples / (double)f->samples);
	else
		fprintf(out, "%9s %6s    ", "", "");
}

static void line_write(void *ctx, int line, const char *source, __u64 samples)
{
	const struct annotation *a = ctx;
	char text[512];

	if (!line) {
		fputs("...\n", a->out);
		return;
	}
	columns(a->out, a->function, samples);
	fprintf(a->out, "%6d  %s\n", line, source ? clean(text, sizeof(text), source) : "");
}

static void file_write(void *ctx, const struct tally *t, size_t n)
{
	const struct annotation *a = ctx;
	char file[1024];
	int err;

	fprintf(a->out, "\n%s\n", clean(file, sizeof(file), t->file));
	err = tally_source(t, n, line_write, ctx);
	if (err < 0)
		fprintf(a->out, "this file cannot be read here: %s\n", strerror(-err));
}

static int source_write(FILE *out, const struct function *f, const struct spots *s)
{
	struct annotation a = { out, f };
	size_t n;
	__cleanup(freep) struct tally *t = tally_lines(s, f, &n);

	if (!t)
		return -ENOMEM;
	if (!n)
		fputs("\nno line of source is known: it was built without -g, or its debug "
		      "information is not here\n",
		      out);
	tally_files(t, n, file_write, &a);
	return 0;
}

/* What the compiler has put into it, and the lines above show in other files. */
static int inlined_write(FILE *out, const struct function *f, const struct spots *s)
{
	size_t n;
	__cleanup(freep) struct tally *t = tally_inlined(s, f, &n);
	char name[4096];

	if (!t)
		return -ENOMEM;
	if (n)
		fputs("\ninlined here\n", out);
	for (size_t i = 0; i < n; i++) {
		columns(out, f, t[i].samples);
		fprintf(out, "%s\n", clean(name, sizeof(name), t[i].file));
	}
	return 0;
}

static void instruction_write(void *ctx, const char *instruction, __u64 samples)
{
	const struct annotation *a = ctx;
	char text[1024];

	columns(a->out, a->function, samples);
	fprintf(a->out, "%s\n", clean(text, sizeof(text), instruction));
}

static void instructions_write(FILE *out, const struct profile *p, const struct function *f,
			       const struct spots *s)
{
	struct annotation a = { out, f };
	int err;

	fputc('\n', out);
	err = listing_show(p, f, s, instruction_write, &a);
	if (err == -ENOENT)
		fputs("no instructions: the file has gone, or is another one by now\n", out);
	else if (err < 0)
		fputs("no instructions: they take objdump; 'apt-get install binutils'\n", out);
}

/* The function of that name with the most samples: the arguments may be left out. */
static const struct function *find(const struct profile *p, const char *name)
{
	size_t n = strlen(name);
	char full[4096];

	for (size_t i = 0; i < p->nfunctions; i++) {
		if (!strcmp(profile_function_name(p, &p->functions[i], full, sizeof(full)), name))
			return &p->functions[i];
	}
	for (size_t i = 0; i < p->nfunctions; i++) {
		const char *other = p->functions[i].name;

		if (other && !strncmp(other, name, n) && other[n] == '(')
			return &p->functions[i];
	}
	return NULL;
}

static int annotate(FILE *out, const struct profile *p, const struct function *f)
{
	char name[4096], object[4096], whole[4096];
	struct spots s;
	int err = spots_init(&s, p, true);

	profile_function_name(p, f, whole, sizeof(whole));
	fprintf(out, "%s in %s: %llu samples, %.2f %% of %llu\n", clean(name, sizeof(name), whole),
		clean(object, sizeof(object), p->objects[f->object].path), f->samples,
		profile_percent(p, f->samples), p->total);
	if (!err)
		err = source_write(out, f, &s);
	if (!err)
		err = inlined_write(out, f, &s);
	if (!err)
		instructions_write(out, p, f, &s);
	spots_fini(&s);
	return err;
}

int verb_annotate(const struct options *o)
{
	__cleanup(profile_freep) struct profile *p = NULL;
	const struct function *f;
	int status;

	if (o->argc != 2) {
		log_err("annotate: a function and a file, please; 'profilctl annotate FUNCTION "
			"FILE'");
		return CTL_USAGE;
	}
	status = load_profile(&p, o->argv[1]);
	if (status)
		return status;
	f = find(p, o->argv[0]);
	if (!f) {
		log_err("no sample fell into a function %s; 'profilctl report %s' lists those "
			"that have some",
			o->argv[0], o->argv[1]);
		return CTL_ERROR;
	}
	return output_end(stdout, o, annotate(stdout, p, f));
}
