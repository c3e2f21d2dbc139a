/* text.c - a profile for people: what is hot, from the top */
#include <string.h>

#include "output.h"

#define NAME_COLUMNS 36
#define LEAST_PERCENT 0.5

/* What others named may hold anything: nothing of it is for the terminal to obey. */
static const char *clean(char *out, size_t bytes, const char *s)
{
	size_t n = 0;

	for (; s[n] && n + 1 < bytes; n++)
		out[n] = (unsigned char)s[n] < ' ' || s[n] == 0x7f ? ' ' : s[n];
	out[n] = '\0';
	return out;
}

static void row(FILE *out, const struct profile *p, const struct function *f)
{
	char object[256], name[1024];

	clean(object, sizeof(object), profile_base_name(p->objects[f->object].path));
	if (f->name)
		clean(name, sizeof(name), f->name);
	else
		snprintf(name, sizeof(name), "%s+0x%llx", object, f->offset);
	fprintf(out, "%6.2f %%  %9llu  %-*s  %s\n", profile_percent(p, f->samples), f->samples,
		NAME_COLUMNS, name, object);
}

/* The functions that are worth a line; of the others their sum. */
static void table(FILE *out, const struct profile *p)
{
	__u64 rest = 0;
	size_t n = 0;

	fprintf(out, "\n  self %%    samples  %-*s  object\n", NAME_COLUMNS, "function");
	for (size_t i = 0; i < p->nfunctions; i++) {
		const struct function *f = &p->functions[i];

		if (profile_percent(p, f->samples) >= LEAST_PERCENT) {
			row(out, p, f);
		} else {
			rest += f->samples;
			n++;
		}
	}
	if (n)
		fprintf(out, "%6.2f %%  %9llu  (%zu more, each below %.1f %%)\n",
			profile_percent(p, rest), rest, n, LEAST_PERCENT);
	if (p->unmatched)
		fprintf(out, "%6.2f %%  %9llu  (in no mapping)\n", profile_percent(p, p->unmatched),
			p->unmatched);
	if (p->lost)
		fprintf(out, "%6.2f %%  %9llu  (lost)\n", profile_percent(p, p->lost), p->lost);
}

static void footer(FILE *out, const struct profile *p)
{
	fprintf(out, "\n%llu samples: %llu binned, %llu unmatched, %llu lost\n", p->total,
		p->binned, p->unmatched, p->lost);
	fprintf(out, "%.6g Hz, a tick is %.6g ms of CPU time; %.2f s",
		p->tick_ns ? 1e9 / (double)p->tick_ns : 0, (double)p->tick_ns / 1e6,
		(double)p->duration_ns / 1e9);
	if (p->cpu_ns)
		fprintf(out, ", %.2f s of them on a CPU", (double)p->cpu_ns / 1e9);
	fputc('\n', out);
	if (p->end == PROFILE_EXITED)
		fprintf(out, "the command exited with status %d\n", p->end_code);
	else if (p->end == PROFILE_KILLED)
		fprintf(out, "the command was killed by signal %d (%s)\n", p->end_code,
			strsignal(p->end_code));
}

void text_write(FILE *out, const struct profile *p)
{
	char command[4096];

	fprintf(out, "%s (pid %d)\n", clean(command, sizeof(command), p->command), (int)p->pid);
	if (p->total)
		table(out, p);
	else
		fputs("\nno samples: it used less CPU time than one tick\n", out);
	footer(out, p);
}
