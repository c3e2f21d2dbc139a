/* folded.c - folded stacks, the input of flame graph tools */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/cleanup.h"

#include "format.h"
#include "profilctl/analyze/stacks/each_stack.h"
#include "profilctl/analyze/sample_location.h"
#include "profilctl/analyze/stacks/stack_ends.h"

/* Semicolons separate frames, newlines stacks: a name must contain neither. */
static void frame(FILE *out, const char *name)
{
	for (; *name; name++)
		fputc(*name == ';' ? ':' : (unsigned char)*name < ' ' ? ' ' : *name, out);
}

/* The program's name without its arguments. */
static void program_name(char *out, size_t bytes, const struct profile *p)
{
	snprintf(out, bytes, "%s", p->command);
	out[strcspn(out, " ")] = '\0';
	if (!*out)
		snprintf(out, bytes, "[unknown]");
}

static void stack(FILE *out, const char *command, const char *object, const char *function,
		  __u64 samples)
{
	if (!samples)
		return;
	frame(out, profile_base_name(command));
	fputc(';', out);
	if (object) {
		frame(out, profile_base_name(object));
		fputc(';', out);
	}
	frame(out, function);
	fprintf(out, " %llu\n", samples);
}

/* A function and the process that ran it. */
struct line {
	const struct function *function;
	const char *command;
	__u64 samples;
};

static int by_function(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return strcmp(x->command, y->command);
}

/* A line for each spot. NULL: out of memory. */
static struct line *lines_of(const struct profile *p, const struct spots *s, const char *program)
{
	struct line *lines = calloc(s->n + 1, sizeof(*lines));

	for (size_t i = 0; lines && i < s->n; i++) {
		const struct spot *spot = &s->spot[i];
		__u32 group = spot->place.group;

		lines[i] =
			(struct line){ spot->function, group ? p->groups[group].command : program,
				       spot->place.count };
	}
	if (lines && s->n)
		qsort(lines, s->n, sizeof(*lines), by_function);
	return lines;
}

static void lines_write(FILE *out, const struct profile *p, const struct line *lines, size_t n)
{
	size_t upto;

	for (size_t i = 0; i < n; i = upto) {
		const struct function *f = lines[i].function;
		char name[4096] = "[unknown]";
		__u64 samples = 0;

		for (upto = i; upto < n && !by_function(&lines[i], &lines[upto]); upto++)
			samples += lines[upto].samples;
		if (f)
			profile_function_name(p, f, name, sizeof(name));
		stack(out, lines[i].command, f ? p->objects[f->object].path : NULL, name, samples);
	}
}

struct folded {
	FILE *out;
	const struct profile *profile;
	const char *program;
};

static int stack_write(void *arg, const struct stack *s)
{
	const struct folded *f = arg;
	char name[4096];

	frame(f->out, profile_base_name(f->program));
	for (size_t i = s->n; i-- > 0;) {
		fputc(';', f->out);
		frame(f->out, stack_frame_name(f->profile, s->frame[i], name, sizeof(name)));
	}
	fprintf(f->out, " %llu\n", s->samples);
	return 0;
}

static int functions_write(FILE *out, const struct profile *p, const char *program)
{
	__cleanup(freep) struct line *lines = NULL;
	struct spots s;
	int err = spots_init(&s, p, false);

	if (!err)
		lines = lines_of(p, &s, program);
	if (!err && !lines)
		err = -ENOMEM;
	if (!err) {
		lines_write(out, p, lines, s.n);
		stack(out, program, NULL, "[unmatched]", p->unmatched);
		stack(out, program, NULL, "[lost]", p->lost);
	}
	spots_fini(&s);
	return err;
}

int folded_write(FILE *out, const struct profile *p)
{
	char program[256];
	struct folded f = { out, p, program };

	program_name(program, sizeof(program), p);
	return has_stacks(p) ? each_stack(p, stack_write, &f) : functions_write(out, p, program);
}
