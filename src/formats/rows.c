/* rows.c - a profile as rows for a database: a line of JSON for each stack, and for what ran */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "analysis/sample_location.h"
#include "format.h"
#include "profile/each_stack.h"
#include "profile/json_name.h"
#include "profile/stack_ends.h"
#include "symbols/proc/container.h"

/*
 * The rows of kind "stack" add up to all samples of the profile; without stacks each has one frame.
 * Those of kind "owner" add up to the binned samples again, by what ran. Frames are names, the
 * outermost first, so that a row means the same whichever host wrote it.
 */
struct rows {
	FILE *out;
	const struct profile *profile;
	json_t *head;	/* what all rows have */
	json_t **frame; /* names, made when first needed */
};

static json_t *head_of(const struct profile *p)
{
	return json_pack("{sI sf so so so so so}", "time", (json_int_t)p->started, "duration",
			 (double)p->duration_ns / 1e9, "host", jsonname(p->host.name), "kernel",
			 jsonname(p->host.kernel), "boot", jsonname(p->host.boot_id), "profile",
			 jsonname(p->command), "event", jsonname(p->event ?: "cpu"));
}

/* The name of frame @i: a new reference. */
static json_t *frame_of(struct rows *r, __u32 i)
{
	char name[4096];

	if (!r->frame[i])
		r->frame[i] = jsonname(stack_frame_name(r->profile, i, name, sizeof(name)));
	return json_incref(r->frame[i]);
}

/* Writes the row of @fields, which it frees, with what all rows have. */
static int row_write(const struct rows *r, json_t *fields, __u64 samples)
{
	json_auto_t *row = json_copy(r->head);
	__u64 each = r->profile->tick_ns ?: r->profile->period;
	int err;

	err = !row || !fields || json_object_update(row, fields) ||
	      json_object_set_new(row, "samples", json_integer((json_int_t)samples)) ||
	      json_object_set_new(row, "value", json_integer((json_int_t)(samples * each)));
	json_decref(fields);
	if (err)
		return -ENOMEM;
	if (json_dumpf(row, r->out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(7)) < 0)
		return -EIO;
	return fputc('\n', r->out) == EOF ? -EIO : 0;
}

/* What ran, as fields. NULL: out of memory. */
static json_t *group_of(const struct group *g)
{
	struct container c = { 0 };

	if (g->cgroup)
		container_of(&c, g->cgroup);
	return json_pack("{so so si so so ss so ss}", "command", jsonname(g->command), "thread",
			 jsonname(g->thread ?: ""), "pid", (int)g->pid, "cgroup",
			 jsonname(g->cgroup ?: ""), "unit", jsonname(g->unit ?: ""), "container",
			 c.id, "container_name", jsonname(c.name), "pod", c.pod);
}

/* The same, with other fields, which it frees. */
static json_t *with_group(json_t *fields, const struct group *g)
{
	json_t *group = group_of(g);

	if (fields && (!group || json_object_update(fields, group))) {
		json_decref(fields);
		fields = NULL;
	}
	json_decref(group);
	return fields;
}

static int stack_write(void *arg, const struct stack *s)
{
	struct rows *r = arg;
	const struct profile *p = r->profile;
	__u32 leaf = s->frame[0];
	bool known = leaf < p->calls.nframes;
	const struct object *o = known ? &p->objects[p->calls.frame[leaf].object] : NULL;
	json_t *stack = json_array(), *fields;

	for (size_t i = s->n; stack && i-- > 0;) {
		if (json_array_append_new(stack, frame_of(r, s->frame[i]))) {
			json_decref(stack);
			stack = NULL;
		}
	}
	fields = json_pack("{ss so so ss so}", "kind", "stack", "function", frame_of(r, leaf),
			   "object", jsonname(o ? o->path : ""), "build_id", o ? o->build_id : "",
			   "stack", stack);
	if (s->group)
		fields = with_group(fields, &p->groups[s->group]);
	return row_write(r, fields, s->samples);
}

/* A stack of one frame. */
static int bare_write(const struct rows *r, const char *name, const struct object *o, __u64 samples)
{
	if (!samples)
		return 0;
	return row_write(r,
			 json_pack("{ss so so ss s[o]}", "kind", "stack", "function",
				   jsonname(name), "object", jsonname(o ? o->path : ""), "build_id",
				   o ? o->build_id : "", "stack", jsonname(name)),
			 samples);
}

static int functions_write(const struct rows *r)
{
	const struct profile *p = r->profile;
	char name[4096];
	int err = 0;

	for (size_t i = 0; i < p->nfunctions && !err; i++) {
		const struct function *f = &p->functions[i];

		err = bare_write(r, profile_function_name(p, f, name, sizeof(name)),
				 &p->objects[f->object], f->samples);
	}
	return err ?: bare_write(r, "[unmatched]", NULL, p->unmatched) ?:
			bare_write(r, "[lost]", NULL, p->lost);
}

/* Samples of what ran in a function; NULL: in the object; NULL, too: anywhere. */
static int owner_write(const struct rows *r, const struct group *g, const struct object *o,
		       const struct function *f, __u64 samples)
{
	const struct profile *p = r->profile;
	char name[4096] = "";

	if (f)
		profile_function_name(p, f, name, sizeof(name));
	return row_write(r,
			 with_group(json_pack("{ss so so ss}", "kind", "owner", "function",
					      jsonname(name), "object", jsonname(o ? o->path : ""),
					      "build_id", o ? o->build_id : ""),
				    g),
			 samples);
}

static int by_owner(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	if (x->place.group != y->place.group)
		return x->place.group < y->place.group ? -1 : 1;
	if (x->place.object != y->place.object)
		return x->place.object < y->place.object ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

/* Places within a function are one row. */
static int spots_write(const struct rows *r)
{
	const struct profile *p = r->profile;
	struct spots s;
	int err = spots_init(&s, p, NULL);

	if (!err && s.n)
		qsort(s.spot, s.n, sizeof(*s.spot), by_owner);
	for (size_t i = 0, next; i < s.n && !err; i = next) {
		const struct place *at = &s.spot[i].place;
		__u64 samples = at->count;

		for (next = i + 1; next < s.n && !by_owner(&s.spot[i], &s.spot[next]); next++)
			samples += s.spot[next].place.count;
		err = owner_write(r, &p->groups[at->group], &p->objects[at->object],
				  s.spot[i].function, samples);
	}
	spots_fini(&s);
	return err;
}

/* The machine's profile counts what ran by object only. */
static int owners_write(const struct rows *r)
{
	const struct profile *p = r->profile;

	if (!p->ngroups)
		return 0;
	if (!p->sums.n)
		return spots_write(r);
	places_each(place, &p->sums) {
		int err = owner_write(r, &p->groups[place->group], &p->objects[place->object], NULL,
				      place->count);
		if (err)
			return err;
	}
	/* A sample counted during the read can be missing in the sums. */
	return p->places.sum > p->sums.sum
		       ? owner_write(r, p->groups, NULL, NULL, p->places.sum - p->sums.sum)
		       : 0;
}

int rows_write(FILE *out, const struct profile *p)
{
	struct rows r = { .out = out, .profile = p, .head = head_of(p) };
	int err;

	r.frame = calloc(stack_frames(p), sizeof(json_t *));
	err = (!r.head || !r.frame ? -ENOMEM
	       : has_stacks(p)	   ? each_stack(p, stack_write, &r)
				   : functions_write(&r))
		      ?: owners_write(&r);
	for (size_t i = 0; r.frame && i < stack_frames(p); i++)
		json_decref(r.frame[i]);
	free(r.frame);
	json_decref(r.head);
	return err;
}
