/* callgrind.c - a profile as callgrind's, for callgrind_annotate and KCachegrind */
#include <string.h>

#include "format.h"
#include "spots.h"

#define UNKNOWN "???"

/* A name is what stands up to the end of the line. */
static void name(FILE *out, const char *key, const char *s)
{
	fputs(key, out);
	for (; *s; s++)
		fputc((unsigned char)*s < ' ' ? ' ' : *s, out);
	fputc('\n', out);
}

static void function(FILE *out, const struct profile *p, const struct spot *spot)
{
	char buf[4096];

	name(out, "ob=", p->objects[spot->place.object].path);
	name(out, "fl=", spot->file ? spot->file : UNKNOWN);
	name(out, "fn=",
	     spot->function ? profile_function_name(p, spot->function, buf, sizeof(buf)) : UNKNOWN);
}

static void cost(FILE *out, const struct profile *p, const struct spot *spot)
{
	fprintf(out, "0x%llx %d %llu\n", spot->place.offset + p->objects[spot->place.object].vaddr,
		spot->file ? spot->line : 0, spot->place.count);
}

static void spots_write(FILE *out, const struct profile *p, const struct spots *s)
{
	const char *file = UNKNOWN;

	for (size_t i = 0; i < s->n; i++) {
		const struct spot *spot = &s->spot[i];
		const char *now = spot->file ? spot->file : UNKNOWN;

		if (!i || spot->function != spot[-1].function ||
		    spot->place.object != spot[-1].place.object)
			function(out, p, spot);
		else if (strcmp(now, file) != 0)
			name(out, "fi=", now);
		file = now;
		cost(out, p, spot);
	}
}

static void nowhere(FILE *out, const char *what, __u64 samples)
{
	if (samples)
		fprintf(out, "ob=" UNKNOWN "\nfl=" UNKNOWN "\nfn=%s\n0x0 0 %llu\n", what, samples);
}

int callgrind_write(FILE *out, const struct profile *p)
{
	struct spots s;
	int err = spots_init(&s, p, true);

	if (!err) {
		fputs("# callgrind format\nversion: 1\ncreator: profilctl " PROFIL_VERSION "\n",
		      out);
		fprintf(out, "pid: %d\n", (int)p->pid);
		name(out, "cmd: ", p->command);
		fputs("positions: instr line\nevents: Samples\n", out);
		fprintf(out, "summary: %llu\n\n", p->total);
		spots_write(out, p, &s);
		nowhere(out, "[unmatched]", p->unmatched);
		nowhere(out, "[lost]", p->lost);
		fprintf(out, "\ntotals: %llu\n", p->total);
	}
	spots_fini(&s);
	return err;
}
