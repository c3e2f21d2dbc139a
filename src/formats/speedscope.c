/* speedscope.c - speedscope's JSON, in nanoseconds; samples of events in samples */
#include <errno.h>

#include "format.h"
#include "profile/json_name.h"
#include "profile/each_stack.h"
#include "profile/stack_ends.h"

struct scope_parts {
	const struct profile *profile;
	json_t *frames;
	json_t *samples;
	json_t *weights;
};

/* What one sample weighs. */
static __u64 weight_of(const struct profile *p)
{
	return p->tick_ns ? p->tick_ns : 1;
}

/*
 * Adds a frame and a sample that consists of it, with that weight. Returns 0, or -1 if out of
 * memory.
 */
static int add(struct scope_parts *s, json_t *name, const char *file, __u64 samples)
{
	json_int_t frame = (json_int_t)json_array_size(s->frames);
	json_int_t weight = (json_int_t)(samples * weight_of(s->profile));

	if (!samples) {
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

/* Writes the outermost frame first. */
static int add_stack(void *arg, const struct stack *s)
{
	struct scope_parts *parts = arg;
	json_t *frames = json_array();
	int err = 0;

	for (size_t i = s->n; i-- > 0;)
		err |= json_array_append_new(frames, json_integer((json_int_t)s->frame[i]));
	err |= json_array_append_new(parts->samples, frames);
	err |= json_array_append_new(
		parts->weights, json_integer((json_int_t)(s->samples * weight_of(parts->profile))));
	return err ? -ENOMEM : 0;
}

static int add_stacks(struct scope_parts *s)
{
	const struct profile *p = s->profile;
	char name[4096];
	int err = 0;

	for (size_t i = 0; i < stack_frames(p); i++)
		err |= json_array_append_new(
			s->frames, json_pack("{so so}", "name",
					     jsonname(stack_frame_name(p, i, name, sizeof(name))),
					     "file", jsonname(stack_frame_path(p, i))));
	return err ? err : each_stack(p, add_stack, s);
}

/* The viewer shows this name, so it also tells how stacks end. */
static json_t *name_of(const struct profile *p)
{
	char ends[2048], name[8192];

	if (!has_stacks(p))
		return jsonname(p->command);
	snprintf(name, sizeof(name), "%s (%s)", p->command,
		 stack_ends_summary(ends, sizeof(ends), p));
	return jsonname(name);
}

int speedscope_write(FILE *out, const struct profile *p)
{
	struct scope_parts s = { p, json_array(), json_array(), json_array() };
	int err = has_stacks(p) ? add_stacks(&s) : add_all(&s);
	json_auto_t *root = json_pack(
		"{ss ss so si s{so} s[{ss so ss si sI so so}]}", "$schema",
		"https://www.speedscope.app/file-format-schema.json", "exporter",
		"profilctl " PROFIL_VERSION, "name", jsonname(p->command), "activeProfileIndex", 0,
		"shared", "frames", s.frames, "profiles", "type", "sampled", "name", name_of(p),
		"unit", p->tick_ns ? "nanoseconds" : "none", "startValue", 0, "endValue",
		(json_int_t)(p->total * weight_of(p)), "samples", s.samples, "weights", s.weights);

	if (err || !root)
		return -ENOMEM;
	if (json_dumpf(root, out, JSON_COMPACT | JSON_ENSURE_ASCII) < 0)
		return -EIO;
	fputc('\n', out);
	return 0;
}
