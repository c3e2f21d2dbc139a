/* interval_sums.c - the profiles of many intervals in memory: adds and removes intervals */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/grow.h"

#include "interval_sums.h"
#include "profile/merge_parts.h"
#include "profile/owners.h"
#include "sample_location.h"

/* An interval that is being added. */
struct adding {
	struct interval_sums *sums;
	const struct profile *from;
	struct numbers numbers;
	__u32 *owner; /* of each object of @from: a group of the sums */
	__u64 *left;  /* of each function of @from: samples that are in no stack with a group */
	struct places runs; /* those that are: by group and object */
	struct interval interval;
};

static bool is_same_part(const struct sums_part *a, const struct sums_part *b)
{
	return a->what == b->what && a->group == b->group && a->owner == b->owner;
}

static __u32 *slot_of(const struct sums_parts *t, const struct sums_part *part)
{
	__u64 h = ((__u64)part->what << 32 ^ (__u64)part->group << 20 ^ part->owner) *
		  0x9e3779b97f4a7c15u;
	size_t at = index_slots_first(&t->slots, h);

	while (t->slots.slot[at] && !is_same_part(&t->part[t->slots.slot[at] - 1], part))
		at = index_slots_next(&t->slots, at);
	return &t->slots.slot[at];
}

static int part_number(struct sums_parts *t, const struct sums_part *part, __u32 *index)
{
	int anew = index_slots_reserve(&t->slots, t->n);
	struct sums_part *grown;
	__u32 *slot;

	if (anew < 0)
		return anew;
	for (__u32 i = 0; anew && i < t->n; i++)
		*slot_of(t, &t->part[i]) = i + 1;
	slot = slot_of(t, part);
	if (!*slot) {
		grown = grow(t->part, t->n, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		t->part = grown;
		t->part[t->n] = *part;
		*slot = (__u32)++t->n;
	}
	*index = *slot - 1;
	return 0;
}

static int count(struct adding *a, enum sums_kind kind, const struct sums_part *part, __u64 samples)
{
	struct interval *v = &a->interval;
	struct sums_count c = { .samples = samples < ~(__u32)0 ? (__u32)samples : ~(__u32)0 };
	struct sums_count *grown;
	int err = part_number(&a->sums->parts[kind], part, &c.part);

	if (err < 0)
		return err;
	grown = grow(v->count[kind], v->n[kind], sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	v->count[kind] = grown;
	v->count[kind][v->n[kind]++] = c;
	return 0;
}

/* The samples by group and object; places have groups where there are no sums. */
static const struct places *runs_of(const struct profile *p)
{
	return p->sums.n ? &p->sums : &p->places;
}

/* The group with the names that all samples of an object had; 0: none is known. */
static int owner_number(struct adding *a, const struct owner *o, __u32 *index)
{
	struct group like = { .command = (char *)(o->command ?: SUMS_SEVERAL),
			      .cgroup = (char *)o->cgroup,
			      .unit = (char *)o->unit };

	*index = 0;
	return o->command || o->cgroup || o->unit ? merge_group(&a->sums->names, &like, index) : 0;
}

static int find_owners(struct adding *a)
{
	const struct profile *p = a->from;
	__cleanup(freep) struct owner *owner = NULL;
	int err = 0;

	a->owner = calloc(p->nobjects + 1, sizeof(*a->owner));
	if (!a->owner)
		return -ENOMEM;
	if (p->ngroups < 2 || p->group_full)
		return 0;
	owner = owners_find(p, runs_of(p));
	for (size_t i = 0; owner && i < p->nobjects && !err; i++)
		err = owner_number(a, &owner[i], &a->owner[i]);
	return owner ? err : -ENOMEM;
}

static int add_function(struct adding *a, const struct function *f, __u32 owner, __u64 samples)
{
	const struct profile *p = a->from;
	struct merge *m = &a->sums->names;
	struct call_frame frame = { .name = f->name, .offset = f->offset };
	struct sums_part part = { .owner = owner };

	return merge_object(m, &a->numbers, p, f->object, &frame.object) ?:
	       merge_offset(m, p, f->object, frame.object, &frame.offset) ?:
	       merge_frame(m, &frame, &part.what) ?:
	       count(a, SUMS_FUNCTIONS, &part, samples);
}

/* Samples of the innermost function of node @at, whose stack has a group, which is its owner. */
static int add_leaf(struct adding *a, struct function **sorted, __u32 at)
{
	const struct profile *p = a->from;
	const struct call_node *n = &p->calls.node[at];
	const struct function *f = function_of_node(p, sorted, at);
	struct place run = { .object = n->object, .group = n->group, .count = n->count };
	__u32 owner;
	int err;

	if (!f)
		return 0;
	if (run.count > a->left[f - p->functions])
		run.count = a->left[f - p->functions];
	if (!run.count)
		return 0;
	a->left[f - p->functions] -= run.count;
	err = merge_group_of(&a->sums->names, &a->numbers, p, n->group, &owner);
	return err ?: places_add(&a->runs, &run) ?: add_function(a, f, owner, run.count);
}

static int add_functions(struct adding *a)
{
	const struct profile *p = a->from;
	__cleanup(freep) struct function **sorted = profile_sorted_functions(p);
	int err = 0;

	a->left = calloc(p->nfunctions + 1, sizeof(*a->left));
	if (!sorted || !a->left)
		return -ENOMEM;
	for (size_t i = 0; i < p->nfunctions; i++)
		a->left[i] = p->functions[i].samples;
	for (__u32 i = CALL_ROOTS; i < p->calls.n && !err; i++) {
		if (p->calls.node[i].group && p->calls.node[i].count)
			err = add_leaf(a, sorted, i);
	}
	for (size_t i = 0; i < p->nfunctions && !err; i++) {
		const struct function *f = &p->functions[i];

		err = a->left[i] ? add_function(a, f, a->owner[f->object], a->left[i]) : 0;
	}
	return err;
}

/* Places have a width and an offset, which runs have not. */
static int sum_runs(struct places *out, const struct places *from)
{
	places_each(place, from) {
		struct place run = { .object = place->object,
				     .group = place->group,
				     .count = place->count };
		int err = places_add(out, &run);

		if (err < 0)
			return err;
	}
	return 0;
}

/* What stacks know of @run has the group as its owner. */
static int add_run(struct adding *a, const struct place *run)
{
	struct merge *m = &a->sums->names;
	struct sums_part part = { .owner = a->owner[run->object] };
	__u64 known = places_count(&a->runs, run), rest;
	int err = merge_object(m, &a->numbers, a->from, run->object, &part.what)
			  ?: merge_group_of(m, &a->numbers, a->from, run->group, &part.group);

	known = known < run->count ? known : run->count;
	rest = run->count - known;
	if (!err && rest)
		err = count(a, SUMS_RUNS, &part, rest);
	part.owner = part.group;
	return err ?: (known ? count(a, SUMS_RUNS, &part, known) : 0);
}

static int add_runs(struct adding *a)
{
	const struct profile *p = a->from;
	struct places runs = { 0 };
	int err = p->ngroups > 1 ? sum_runs(&runs, runs_of(p)) : 0;

	places_each(place, &runs)
		err = err ?: add_run(a, place);
	places_fini(&runs);
	return err;
}

/* A node for each function in its calling context, instead of each address. */
static int add_stacks(struct adding *a)
{
	const struct call_tree *t = &a->from->calls;
	struct merge *m = &a->sums->names;
	struct call_tree *own = &m->into->calls;
	__cleanup(freep) __u32 *to = calloc(t->n + 1, sizeof(*to));
	int err = to ? 0 : -ENOMEM;

	for (__u32 i = 0; i < t->n && !err; i++) {
		const struct call_node *node = &t->node[i];
		struct sums_part part = { 0 };
		__u32 frame;

		to[i] = i;
		if (i >= CALL_ROOTS) {
			err = merge_frame_of(m, &a->numbers, a->from, node->frame, &frame)
				      ?: call_tree_add(own, to[node->parent], 0, frame, &to[i]);
			if (!err)
				own->node[to[i]].frame = frame;
			part.owner = a->owner[node->object];
		}
		if (!err && node->group)
			err = merge_group_of(m, &a->numbers, a->from, node->group, &part.owner);
		part.what = to[i];
		if (!err && node->count)
			err = count(a, SUMS_STACKS, &part, node->count);
	}
	return err;
}

static int by_part(const void *a, const void *b)
{
	const struct sums_count *x = a, *y = b;

	return x->part < y->part ? -1 : x->part > y->part;
}

/* Adds up what has the same number, and frees the room that is not used. */
static void tidy(struct interval *v, enum sums_kind kind)
{
	struct sums_count *c = v->count[kind], *smaller;
	size_t n = 0;

	if (!c)
		return;
	qsort(c, v->n[kind], sizeof(*c), by_part);
	for (size_t i = 0; i < v->n[kind]; i++) {
		if (n && c[n - 1].part == c[i].part)
			c[n - 1].samples += c[i].samples;
		else
			c[n++] = c[i];
	}
	v->n[kind] = n;
	smaller = reallocarray(c, n, sizeof(*c));
	v->count[kind] = smaller ? smaller : c;
}

static void interval_fini(struct interval *v)
{
	for (int kind = 0; kind < SUMS_KINDS; kind++)
		free(v->count[kind]);
}

static size_t interval_bytes(const struct interval *v)
{
	size_t bytes = sizeof(*v);

	for (int kind = 0; kind < SUMS_KINDS; kind++)
		bytes += v->n[kind] * sizeof(struct sums_count);
	return bytes;
}

/* The place of an interval that begins at @start, behind those that begin with it. */
static size_t place_of(const struct interval_sums *s, time_t start)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->interval[middle].start <= start)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int insert(struct interval_sums *s, const struct interval *v)
{
	size_t at = place_of(s, v->start);
	struct interval *grown = grow(s->interval, s->n, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	s->interval = grown;
	memmove(grown + at + 1, grown + at, (s->n - at) * sizeof(*grown));
	grown[at] = *v;
	s->n++;
	s->bytes += interval_bytes(v);
	return 0;
}

/* Initializes the names from the first profile. */
static int begin(struct interval_sums *s, const struct profile *p)
{
	struct profile *names = profile_new();

	if (!names)
		return -ENOMEM;
	s->names.into = names;
	names->host = p->host;
	names->command = strdup(p->command ?: "");
	return names->command ? profile_add_object(names, "[unit]", 0, 0, -1, &s->unit) ?:
				profile_add_object(names, "[command]", 0, 0, -1, &s->command) ?:
				call_tree_init(&names->calls)
			      : -ENOMEM;
}

int interval_sums_add(struct interval_sums *s, const struct profile *p, time_t start,
		      time_t seconds)
{
	struct adding a = { .sums = s,
			    .from = p,
			    .interval = { .start = start,
					  .seconds = seconds,
					  .tick_ns = p->tick_ns,
					  .duration_ns = p->duration_ns,
					  .total = p->total,
					  .unmatched = p->unmatched,
					  .lost = p->lost } };
	int err = s->names.into ? 0 : begin(s, p);

	err = err ?: numbers_init(&a.numbers, p) ?: find_owners(&a) ?: add_functions(&a) ?:
		  add_runs(&a) ?: add_stacks(&a);
	for (int kind = 0; kind < SUMS_KINDS; kind++)
		tidy(&a.interval, (enum sums_kind)kind);
	err = err ?: insert(s, &a.interval);
	if (err)
		interval_fini(&a.interval);
	numbers_fini(&a.numbers);
	places_fini(&a.runs);
	free(a.owner);
	free(a.left);
	return err;
}

size_t interval_sums_count(const struct interval_sums *s, time_t start, time_t seconds)
{
	size_t n = 0;

	for (size_t at = place_of(s, start); at-- > 0 && s->interval[at].start == start;)
		n += s->interval[at].seconds == seconds;
	return n;
}

void interval_sums_remove(struct interval_sums *s, size_t n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n; i++) {
		s->bytes -= interval_bytes(&s->interval[i]);
		interval_fini(&s->interval[i]);
	}
	memmove(s->interval, s->interval + n, (s->n - n) * sizeof(*s->interval));
	s->n -= n;
	s->removed += n;
}

void interval_sums_fini(struct interval_sums *s)
{
	interval_sums_remove(s, s->n);
	for (int kind = 0; kind < SUMS_KINDS; kind++) {
		free(s->parts[kind].part);
		index_slots_fini(&s->parts[kind].slots);
	}
	free(s->interval);
	merge_forget(&s->names);
	index_slots_fini(&s->names.frames);
	profile_free(s->names.into);
	*s = (struct interval_sums){ 0 };
}
