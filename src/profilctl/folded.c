/* folded.c - a profile as folded stacks, which flame graphs are made of */
#include <string.h>

#include "format.h"

/* Semicolons part the frames, and a line is a stack. */
static void frame(FILE *out, const char *name)
{
	for (; *name; name++)
		fputc(*name == ';' ? ':' : (unsigned char)*name < ' ' ? ' ' : *name, out);
}

/* The program's name without its arguments. */
static void command(FILE *out, const struct profile *p)
{
	char name[256];

	snprintf(name, sizeof(name), "%s", p->command);
	name[strcspn(name, " ")] = '\0';
	frame(out, *name ? profile_base_name(name) : "[unknown]");
}

static void stack(FILE *out, const struct profile *p, const char *object, const char *function,
		  __u64 samples)
{
	if (!samples)
		return;
	command(out, p);
	fputc(';', out);
	if (object) {
		frame(out, profile_base_name(object));
		fputc(';', out);
	}
	frame(out, function);
	fprintf(out, " %llu\n", samples);
}

int folded_write(FILE *out, const struct profile *p)
{
	for (size_t i = 0; i < p->nfunctions; i++) {
		const struct function *f = &p->functions[i];
		char name[4096];

		stack(out, p, p->objects[f->object].path,
		      profile_function_name(p, f, name, sizeof(name)), f->samples);
	}
	stack(out, p, NULL, "[unmatched]", p->unmatched);
	stack(out, p, NULL, "[lost]", p->lost);
	return 0;
}
