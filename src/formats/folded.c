/* folded.c - folded stacks, the input of flame graph tools */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "folded_stacks.h"
#include "format.h"
#include "analysis/sample_location.h"
#include "profile/stack_ends.h"
#include "base/grow.h"

/* The names of a function, its object and its program, separated by semicolons. */
struct line {
	char *frames;
	__u64 samples;
};

/* Different functions can have the same names: their lines are added up before they are written. */
struct folded {
	const struct profile *profile;
	char program[256];
	struct line *line;
	size_t n;
};

/* Adds a line; takes ownership of @frames. */
static int add(struct folded *f, char *frames, __u64 samples)
{
	struct line *grown = grow(f->line, f->n, sizeof(*grown));

	if (!grown) {
		free(frames);
		return -ENOMEM;
	}
	f->line = grown;
	f->line[f->n++] = (struct line){ frames, samples };
	return 0;
}

static int add_function(struct folded *f, const char *command, const char *object, const char *name,
			__u64 samples)
{
	__cleanup(freep) char *program = folded_name(profile_base_name(command));
	__cleanup(freep) char *file = folded_name(object ? profile_base_name(object) : "");
	__cleanup(freep) char *function = folded_name(name);
	char *frames;

	if (!samples)
		return 0;
	if (!program || !file || !function ||
	    asprintf(&frames, "%s;%s%s%s", program, file, object ? ";" : "", function) < 0)
		return -ENOMEM;
	return add(f, frames, samples);
}

/* Adds a line for each spot. */
static int add_spots(struct folded *f, const struct spots *s)
{
	const struct profile *p = f->profile;
	int err = 0;

	for (size_t i = 0; i < s->n && !err; i++) {
		const struct spot *spot = &s->spot[i];
		const struct function *function = spot->function;
		__u32 group = spot->place.group;
		char name[4096] = "[unknown]";

		if (function)
			profile_function_name(p, function, name, sizeof(name));
		err = add_function(f, group ? p->groups[group].command : f->program,
				   function ? p->objects[function->object].path : NULL, name,
				   spot->place.count);
	}
	return err;
}

static int add_functions(struct folded *f)
{
	const struct profile *p = f->profile;
	struct spots s;
	int err = spots_init(&s, p, false);

	if (!err)
		err = add_spots(f, &s);
	if (!err)
		err = add_function(f, f->program, NULL, "[unmatched]", p->unmatched);
	if (!err)
		err = add_function(f, f->program, NULL, "[lost]", p->lost);
	spots_fini(&s);
	return err;
}

static int by_frames(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return strcmp(x->frames, y->frames);
}

static void lines_write(FILE *out, const struct line *line, size_t n)
{
	size_t upto;

	for (size_t i = 0; i < n; i = upto) {
		__u64 samples = 0;

		for (upto = i; upto < n && !by_frames(&line[i], &line[upto]); upto++)
			samples += line[upto].samples;
		fprintf(out, "%s %llu\n", line[i].frames, samples);
	}
}

static int functions_write(FILE *out, struct folded *f)
{
	int err = add_functions(f);

	if (!err && f->n) {
		qsort(f->line, f->n, sizeof(*f->line), by_frames);
		lines_write(out, f->line, f->n);
	}
	for (size_t i = 0; i < f->n; i++)
		free(f->line[i].frames);
	free(f->line);
	return err;
}

int folded_write(FILE *out, const struct profile *p)
{
	struct folded f = { .profile = p };
	__cleanup(freep) char *program = NULL;

	if (!*profile_program(f.program, sizeof(f.program), p))
		strcpy(f.program, "[unknown]");
	program = folded_name(profile_base_name(f.program));
	if (!program)
		return -ENOMEM;
	return has_stacks(p) ? folded_stacks(out, p, program) : functions_write(out, &f);
}
