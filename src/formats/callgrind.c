/* callgrind.c - callgrind's format, for callgrind_annotate and KCachegrind */
#include <string.h>

#include "format.h"
#include "callgrind_calls.h"
#include "analysis/sample_location.h"
#include "profile/stack_ends.h"

#define UNKNOWN "???"

static bool is_same_function(const struct spot *a, const struct spot *b)
{
	return a->function == b->function && a->place.object == b->place.object;
}

/* The file of the function at spot @i, the first of its spots: that of code not inlined into it. */
static const char *file_of(const struct spots *s, size_t i)
{
	for (size_t k = i; k < s->n && is_same_function(&s->spot[k], &s->spot[i]); k++) {
		if (s->spot[k].file && !s->spot[k].inlined)
			return s->spot[k].file;
	}
	return UNKNOWN;
}

static void function(FILE *out, const struct profile *p, const struct spot *spot, const char *file)
{
	char buf[4096];

	callgrind_name(out, "ob=", p->objects[spot->place.object].path);
	callgrind_name(out, "fl=", file);
	callgrind_name(out, "fn=",
		       spot->function ? profile_function_name(p, spot->function, buf, sizeof(buf))
				      : UNKNOWN);
}

static void cost(FILE *out, const struct profile *p, const struct spot *spot)
{
	const struct object *o = &p->objects[spot->place.object];

	fprintf(out, "0x%llx %d %llu\n", object_address(o, spot->place.offset),
		spot->file ? spot->line : 0, spot->place.count);
}

static void spots_write(FILE *out, const struct profile *p, const struct spots *s)
{
	const char *file = UNKNOWN;

	for (size_t i = 0; i < s->n; i++) {
		const struct spot *spot = &s->spot[i];
		const char *now = spot->file ? spot->file : UNKNOWN;

		if (!i || !is_same_function(spot, &spot[-1])) {
			file = file_of(s, i);
			function(out, p, spot, file);
		}
		if (strcmp(now, file) != 0)
			callgrind_name(out, "fi=", now);
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
	bool calls = has_stacks(p);
	char ends[2048];
	struct spots s = { 0 };
	int err = calls ? 0 : spots_init(&s, p, true);

	if (!err) {
		fputs("# callgrind format\nversion: 1\ncreator: profilctl " PROFIL_VERSION "\n",
		      out);
		fprintf(out, "pid: %d\n", (int)p->pid);
		callgrind_name(out, "cmd: ", p->command);
		if (calls)
			callgrind_name(out,
				       "desc: Stacks: ", stack_ends_summary(ends, sizeof(ends), p));
		fputs("positions: instr line\nevents: Samples\n", out);
		fprintf(out, "summary: %llu\n\n", p->total);
		if (calls) {
			err = callgrind_calls(out, p);
		} else {
			spots_write(out, p, &s);
			nowhere(out, "[unmatched]", p->unmatched);
			nowhere(out, "[lost]", p->lost);
		}
		fprintf(out, "\ntotals: %llu\n", p->total);
	}
	spots_fini(&s);
	return err;
}
