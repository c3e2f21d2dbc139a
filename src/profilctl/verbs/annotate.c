/* annotate.c - prints the source and instructions of a function with sample counts */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/cleanup.h"

#include "analysis/disassembly.h"
#include "analysis/find_function.h"
#include "analysis/line_counts.h"
#include "analysis/sample_location.h"
#include "profilctl/output/output.h"
#include "profilctl/output/text.h"
#include "load_operands.h"
#include "base/sanitize.h"
#include "profilctl/util/terminal.h"
#include "symbols/lines_store.h"
#include "symbols/short_name.h"
#include "annotate.h"
#include "verb.h"

/* Limits for one file or one function's instructions. */
#define HOT_LINES 100
#define CONTEXT_LINES 4
#define HOTTEST 10
#define OTHER_NAMES 5
#define COUNT_COLUMNS 20 /* width of the columns before an inlined function */
#define NAME_COLUMNS_MIN 40

struct annotation {
	FILE *out;
	const struct profile *profile;
	const struct function *function;
	struct listing_bounds bounds;
	size_t columns;	  /* of a line; 0: names are not shortened */
	bool addresses;	  /* the listing has instructions */
	const char *file; /* source file of the listing */
	int err;
};

/* The name of a function as the line shows it of which @used columns are taken. */
static const char *shown_name(char *out, size_t bytes, const char *name, size_t columns,
			      size_t used)
{
	char clean[4096];

	sanitize(clean, sizeof(clean), name);
	if (columns)
		return fit_name(out, bytes, clean,
				columns > used + NAME_COLUMNS_MIN ? columns - used
								  : NAME_COLUMNS_MIN);
	snprintf(out, bytes, "%s", clean);
	return out;
}

static size_t name_columns(const struct options *o, size_t columns)
{
	return o->full_names ? 0 : columns ? columns : TEXT_COLUMNS;
}

static void columns(FILE *out, const struct function *f, __u64 samples)
{
	if (samples)
		fprintf(out, "%9llu %6.2f %%  ", samples,
			100 * (double)samples / (double)f->samples);
	else
		fprintf(out, "%9s %6s    ", "", "");
}

static void line_write(void *ctx, const struct listed *line)
{
	const struct annotation *a = ctx;
	char text[512];

	columns(a->out, a->function, line->samples);
	fprintf(a->out, a->addresses ? "%8llx:  %s\n" : "%6llu  %s\n", line->at,
		sanitize(text, sizeof(text), line->text));
}

static void gap_write(void *ctx, size_t lines, __u64 samples)
{
	const struct annotation *a = ctx;

	columns(a->out, a->function, samples);
	fprintf(a->out, "... %zu %s%s\n", lines, a->addresses ? "instruction" : "line",
		lines > 1 ? "s" : "");
}

static const struct listing_writer writer = { line_write, gap_write };

/* Writes the lines with most samples, in order of samples. */
static int hottest_write(const struct annotation *a, const struct listing *l)
{
	size_t n;
	__cleanup(freep) const struct listed **hottest = listing_hottest(l, &n);

	if (!hottest)
		return -ENOMEM;
	if (n < 2)
		return 0;
	fprintf(a->out, "hottest %s\n", a->addresses ? "instructions" : "lines");
	for (size_t i = 0; i < n && i < HOTTEST; i++)
		line_write((void *)a, hottest[i]);
	fputs("in order\n", a->out);
	return 0;
}

static void file_write(void *ctx, const struct tally *t, size_t n)
{
	struct annotation *a = ctx;
	char file[1024];
	struct listing l;

	if (a->err)
		return;
	fprintf(a->out, "\n%s\n", sanitize(file, sizeof(file), t->file));
	a->err = tally_listing(&l, t, n);
	if (!a->err)
		a->err = hottest_write(a, &l);
	if (!a->err)
		a->err = listing_excerpt(&l, a->bounds, &writer, a);
	if (!a->err && !l.readable)
		fputs("this file cannot be read here, or is another one by now\n", a->out);
	listing_fini(&l);
}

/* Says why the code of @o cannot be read, with a cure if there is one. */
static const char *unreadable(const struct object *o)
{
	switch (o->kind) {
	case OBJECT_KERNEL:
		return "the kernel's code is read from no file; 'objdump -d' of its vmlinux or of "
		       "a module shows it";
	case OBJECT_VDSO:
		return "the vdso is in no file; 'disassemble' of gdb shows it in a process";
	case OBJECT_ANON:
		return o->jitdump ? "the jitdump, in which the code was, was removed or replaced"
				  : "compiled at run time, it was in the memory of the process "
				    "only; its runtime can print it, or write a jitdump";
	case OBJECT_INTERPRETED:
		return "an interpreter executes it: it has no instructions of the machine";
	case OBJECT_FILE:
		break;
	}
	return *o->build_id ? "the file was removed or replaced after the profile"
			    : "the file has no build id, so it may be another one by now; link it "
			      "with -Wl,--build-id";
}

static const struct object *object_of(const struct annotation *a)
{
	return &a->profile->objects[a->function->object];
}

/* Says whether source and instructions are read from a file that is known to be the one that ran.
 */
static bool has_file(const struct object *o)
{
	return o->kind == OBJECT_FILE && (o->fd >= 0 || *o->build_id);
}

static int source_write(struct annotation *a, const struct spots *s)
{
	size_t n;
	__cleanup(freep) struct tally *t = tally_lines(s, a->function, &n);

	if (!t)
		return -ENOMEM;
	if (!n && has_file(object_of(a)))
		fputs("\nno line of source is known: it was built without -g, or its debug "
		      "information is not here\n",
		      a->out);
	a->addresses = false;
	tally_files(t, n, file_write, a);
	return a->err;
}

/* Writes the inlined functions, whose lines are listed under other files. */
static int inlined_write(const struct annotation *a, const struct spots *s)
{
	size_t n;
	__cleanup(freep) struct tally *t = tally_inlined(s, a->function, &n);
	char name[4096];
	__u64 rest = 0;

	if (!t)
		return -ENOMEM;
	if (n)
		fputs("\ninlined here\n", a->out);
	for (size_t i = 0; i < n; i++) {
		if (i >= a->bounds.hot) {
			rest += t[i].samples;
			continue;
		}
		columns(a->out, a->function, t[i].samples);
		fprintf(a->out, "%s\n",
			shown_name(name, sizeof(name), t[i].file, a->columns, COUNT_COLUMNS));
	}
	if (rest) {
		columns(a->out, a->function, rest);
		fprintf(a->out, "... %zu more\n", n - a->bounds.hot);
	}
	return 0;
}

static int instructions_write(struct annotation *a, struct disassembler *d)
{
	struct listing l;
	int err = disassemble(&l, d, a->function);

	fputc('\n', a->out);
	a->addresses = true;
	if (err == -ENOENT)
		fprintf(a->out, "no instructions: %s\n", unreadable(object_of(a)));
	else if (err == -ENOSYS)
		fputs("no instructions: they take objdump; 'apt-get install binutils'\n", a->out);
	else if (!err)
		err = hottest_write(a, &l);
	err = err ?: listing_excerpt(&l, a->bounds, &writer, a);
	if (!err && l.outside) {
		columns(a->out, a->function, l.outside);
		fputs("elsewhere in the function, which is too long to be listed\n", a->out);
	}
	listing_fini(&l);
	return err == -ENOMEM ? err : 0;
}

int annotate_write(FILE *out, const struct options *o, const struct profile *p,
		   const struct function *f, size_t columns)
{
	struct annotation a = { .out = out,
				.profile = p,
				.function = f,
				.bounds = o->all ? LISTING_WHOLE
						 : (struct listing_bounds){ HOT_LINES,
									    CONTEXT_LINES },
				.columns = name_columns(o, columns) };
	__cleanup(lines_store_fini) struct lines_store lines = { .profile = p };
	char name[4096], object[4096], whole[4096], rest[4200];
	struct disassembler d = { 0 };
	struct spots s;
	int err = spots_init(&s, p, &lines) ?: disassembler_init(&d, p, &s);

	profile_function_name(p, f, whole, sizeof(whole));
	snprintf(rest, sizeof(rest), " in %s: %llu samples, %.2f %% of %llu",
		 sanitize(object, sizeof(object), p->objects[f->object].path), f->samples,
		 profile_percent(p, f->samples), p->total);
	fprintf(out, "%s%s\n", shown_name(name, sizeof(name), whole, a.columns, columns_of(rest)),
		rest);
	err = err ?: source_write(&a, &s) ?: inlined_write(&a, &s) ?: instructions_write(&a, &d);
	disassembler_fini(&d);
	spots_fini(&s);
	return err;
}

/* Lists the other functions that match the name. */
static void others_write(FILE *out, const struct profile *p, const struct matches *m,
			 size_t columns)
{
	char name[4096], whole[4096];

	if (m->n < 2)
		return;
	fprintf(out, "\n%zu more %s called like this:\n", m->n - 1,
		m->n == 2 ? "function is" : "functions are");
	for (size_t i = 1; i < m->n && i <= OTHER_NAMES; i++) {
		profile_function_name(p, m->function[i], whole, sizeof(whole));
		fprintf(out, "%9llu  %s\n", m->function[i]->samples,
			shown_name(name, sizeof(name), whole, columns, COUNT_COLUMNS));
	}
	if (m->n > OTHER_NAMES + 1)
		fprintf(out, "%9s  ...\n", "");
}

static int find(struct matches *m, const struct profile *p, const char *name, const char *file)
{
	int err = matches_find(m, p, name);

	if (!err)
		return CTL_OK;
	if (err == -ENOENT)
		log_err("no function %s has samples; 'profilctl report %s' lists those that have",
			name, file);
	else
		log_err("%s: %s", name,
			err == -EINVAL ? "not a regular expression" : strerror(-err));
	return CTL_ERROR;
}

int verb_annotate(const struct options *o)
{
	__cleanup(profile_freep) struct profile *p = NULL;
	struct matches m = { 0 };
	int status, partial;

	if (o->argc < 2) {
		log_err("annotate: needs a function and files: 'profilctl annotate FUNCTION "
			"FILE...'");
		return CTL_USAGE;
	}
	status = load_operands(&p, o, o->argv + 1, (size_t)o->argc - 1);
	partial = status == CTL_PARTIAL ? status : CTL_OK;
	if (!status || partial)
		status = find(&m, p, o->argv[0], o->argv[1]);
	if (!status) {
		size_t columns = terminal_columns(STDOUT_FILENO);
		int err;

		pager_begin();
		err = annotate_write(stdout, o, p, m.function[0], columns);
		others_write(stdout, p, &m, name_columns(o, columns));
		status = output_end(stdout, o, err);
		pager_end();
	}
	matches_fini(&m);
	return status ? status : partial;
}
