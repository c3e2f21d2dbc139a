/* speedscope.c - a profile as speedscope's JSON, in nanoseconds of CPU time */
#include <errno.h>

#include "format.h"
#include "jsonname.h"

struct scope_parts {
	const struct profile *profile;
	json_t *frames;
	json_t *samples;
	json_t *weights;
};

/* A frame that one sample of so many ticks stands on alone. Returns 0, or -1 for want of memory. */
static int add(struct scope_parts *s, json_t *name, const char *file, __u64 ticks)
{
	json_int_t frame = (json_int_t)json_array_size(s->frames);
	json_int_t weight = (json_int_t)(ticks * s->profile->tick_ns);

	if (!ticks) {
		json_decref(name);
		return 0;
	}
	return json_array_append_new(s->frames,
				     json_pack("{so so}", "name", name, "file", jsonname(file))) |
	       json_array_append_new(s->samples, json_pack("[I]", frame)) |
	       json_array_append_new(s->weights, json_integer(weight));
}

static int add_all(struct scope_parts *s)
{
	const struct profile *p = s->profile;
	int err = 0;

	for (size_t i = 0; i < p->nfunctions; i++) {
		const struct function *f = &p->functions[i];

		err |= add(s, jsonname_of(p, f), p->objects[f->object].path, f->samples);
	}
	err |= add(s, json_string("[unmatched]"), "", p->unmatched);
	err |= add(s, json_string("[lost]"), "", p->lost);
	return err;
}

int speedscope_write(FILE *out, const struct profile *p)
{
	struct scope_parts s = { p, json_array(), json_array(), json_array() };
	int err = add_all(&s);
	json_auto_t *root = json_pack(
		"{ss ss so si s{so} s[{ss so ss si sI so so}]}", "$schema",
		"https://www.speedscope.app/file-format-schema.json", "exporter",
		"profilctl " PROFIL_VERSION, "name", jsonname(p->command), "activeProfileIndex", 0,
		"shared", "frames", s.frames, "profiles", "type", "sampled", "name",
		jsonname(p->command), "unit", "nanoseconds", "startValue", 0, "endValue",
		(json_int_t)(p->total * p->tick_ns), "samples", s.samples, "weights", s.weights);

	if (err || !root)
		return -ENOMEM;
	if (json_dumpf(root, out, JSON_COMPACT) < 0)
		return -EIO;
	fputc('\n', out);
	return 0;
}
