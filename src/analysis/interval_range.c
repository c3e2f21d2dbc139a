/* interval_range.c - the sum of intervals over a span of time, as a profile */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "interval_sums.h"

/* Says of a group whether a choice selects it; UNKNOWN: some samples of this owner may be. */
enum verdict { NO, YES, UNKNOWN };

struct range {
	const struct interval_sums *sums;
	const struct sums_choice *choice;
	const struct profile *names;
	struct profile *to;
	struct profile *all;
	__u64 *sum[SUMS_KINDS];
	__u64 *flat;	   /* of SUMS_FUNCTIONS: of intervals without stacks */
	__u64 *of_frame;   /* samples by frame */
	__u64 *coarse;	   /* samples by object whose functions are not distinguished */
	char *owner, *run; /* an enum verdict for each group, as an owner and of RUNS */
	__u32 *frame;	   /* of each frame of the names: its number in @to + 1 */
	__u32 *node, *of;  /* of each node: its number in @to + 1, below the owner of - 1 */
	bool by_unit;
};

static void range_fini(struct range *r)
{
	for (int kind = 0; kind < SUMS_KINDS; kind++)
		free(r->sum[kind]);
	free(r->flat);
	free(r->of_frame);
	free(r->coarse);
	free(r->owner);
	free(r->run);
	free(r->frame);
	free(r->node);
	free(r->of);
}

const char *sums_language(const struct object *o)
{
	switch (o->kind) {
	case OBJECT_KERNEL:
		return "kernel";
	case OBJECT_INTERPRETED:
		return o->path;
	case OBJECT_ANON:
		return "JIT";
	default:
		return "native";
	}
}

static bool is_chosen(const struct interval *v, const struct sums_choice *c)
{
	time_t twice = 2 * v->start + v->seconds;

	return twice >= 2 * c->since && twice < 2 * c->until;
}

static void add_counts(struct range *r, const struct interval *v)
{
	for (int kind = 0; kind < SUMS_KINDS; kind++) {
		for (size_t i = 0; i < v->n[kind]; i++)
			r->sum[kind][v->count[kind][i].part] += v->count[kind][i].samples;
	}
	for (size_t i = 0; i < v->n[SUMS_FUNCTIONS] && !v->n[SUMS_STACKS]; i++)
		r->flat[v->count[SUMS_FUNCTIONS][i].part] += v->count[SUMS_FUNCTIONS][i].samples;
}

/* Adds up the intervals; the last one determines what a sample stands for. */
static void add_intervals(struct range *r, struct sums_range *out)
{
	struct profile *p = r->to;

	for (size_t i = r->sums->n; i-- > 0;) {
		const struct interval *v = &r->sums->interval[i];

		if (!v->total || !is_chosen(v, r->choice))
			continue;
		if (!out->intervals)
			p->tick_ns = r->all->tick_ns = v->tick_ns;
		if (v->tick_ns != p->tick_ns) {
			out->other_rate++;
			continue;
		}
		out->intervals++;
		out->stacks |= v->n[SUMS_STACKS] > 0;
		p->started = v->start;
		p->duration_ns += v->duration_ns;
		p->total += v->total;
		p->unmatched += v->unmatched;
		p->lost += v->lost;
		add_counts(r, v);
	}
}

/* What an owner does not tell is unknown; a group of RUNS tells all. */
static bool is_known(const struct group *g, enum rows_by by)
{
	switch (by) {
	case ROWS_COMMAND:
		return strcmp(g->command, SUMS_SEVERAL) != 0;
	case ROWS_UNIT:
		return g->unit || g->cgroup;
	case ROWS_CGROUP:
	case ROWS_CONTAINER:
		return g->cgroup;
	default:
		return false;
	}
}

static int judge_group(const struct range *r, const struct group *g, bool owner, char *out)
{
	bool unknown =
		owner && r->by_unit && !(is_known(g, ROWS_UNIT) && is_known(g, ROWS_COMMAND));

	*out = YES;
	for (int by = ROWS_PROCESS; by < ROWS_HOST && *out == YES; by++) {
		__cleanup(freep) char *name = NULL;

		if (!r->choice->name[by])
			continue;
		if (owner && !is_known(g, (enum rows_by)by)) {
			unknown = true;
			continue;
		}
		name = rows_group_name(r->names, g, (enum rows_by)by);
		if (!name)
			return -ENOMEM;
		*out = strcmp(name, r->choice->name[by]) ? NO : YES;
	}
	if (*out == YES && unknown)
		*out = UNKNOWN;
	return 0;
}

/* Group 0 is no owner: nothing is known. */
static int judge(struct range *r)
{
	static const struct group none = { .command = (char *)SUMS_SEVERAL };
	const struct profile *names = r->names;
	int err = judge_group(r, &none, true, &r->owner[0]);

	r->run[0] = YES;
	for (int by = 0; by < ROWS_HOST; by++)
		r->run[0] = r->choice->name[by] ? NO : r->run[0];
	for (size_t i = 1; i < names->ngroups && !err; i++)
		err = judge_group(r, &names->groups[i], true, &r->owner[i])
			      ?: judge_group(r, &names->groups[i], false, &r->run[i]);
	return err;
}

static bool is_language(const struct range *r, __u32 object)
{
	const char *wanted = r->choice->language;

	return !wanted || !strcmp(wanted, sums_language(&r->names->objects[object]));
}

/* Finds or adds a frame that is like @like, by its number in @slot. */
static int add_frame(struct range *r, const struct call_frame *like, __u32 *slot)
{
	struct call_frame own = *like;
	__u32 index;
	int err;

	if (*slot)
		return 0;
	own.name = own.name ? strdup(own.name) : NULL;
	if (!own.name && like->name)
		return -ENOMEM;
	err = call_tree_add_frame(&r->to->calls, &own, &index);
	*slot = err ? 0 : index + 1;
	return err;
}

/* Finds or adds frame @like below @parent; @key tells it from its siblings. */
static int add_level(struct range *r, __u32 parent, const char *name, __u32 object, __u64 key,
		     __u32 *node)
{
	struct call_tree *t = &r->to->calls;
	struct call_frame frame = { .name = (char *)name, .object = object };
	size_t before = t->n;
	__u32 slot = 0;
	int err = call_tree_add(t, parent, object, ~key, node);

	if (err || t->n == before)
		return err;
	err = add_frame(r, &frame, &slot);
	t->node[*node].frame = slot - 1;
	return err;
}

/* The node of the unit and the command of @group below @root. */
static int add_prefix(struct range *r, __u32 root, __u32 group, __u32 *node)
{
	const struct group *g = &r->names->groups[group];
	const char *unit = group ? g->unit ?: "(no unit)" : "(not distinguished)";

	*node = root;
	if (!r->by_unit)
		return 0;
	return add_level(r, root, unit, r->sums->unit, hash_text(1, unit), node)
		       ?: add_level(r, *node, g->command, r->sums->command,
				    hash_text(1, g->command), node);
}

/* A file as a frame. */
static int add_file(struct range *r, __u32 parent, __u32 object, __u32 *node)
{
	return add_level(r, parent, profile_base_name(r->names->objects[object].path), object,
			 object, node);
}

/* Code in a file, below that file. */
static int add_flat(struct range *r, const struct sums_part *part, __u64 samples)
{
	const struct call_frame *f = &r->names->calls.frame[part->what];
	struct call_tree *t = &r->to->calls;
	__u32 node = CALL_WHOLE;
	int err = call_tree_init(t) ?: add_prefix(r, CALL_WHOLE, part->owner, &node) ?:
		  add_file(r, node, f->object, &node) ?:
		  call_tree_add(t, node, f->object, part->what, &node) ?:
		  add_frame(r, f, &r->frame[part->what]);

	if (!err) {
		t->node[node].frame = r->frame[part->what] - 1;
		t->node[node].count += samples;
	}
	return err;
}

static int add_functions(struct range *r)
{
	const struct sums_parts *parts = &r->sums->parts[SUMS_FUNCTIONS];
	int err = 0;

	for (size_t i = 0; i < parts->n && !err; i++) {
		const struct sums_part *part = &parts->part[i];
		const struct call_frame *f = &r->names->calls.frame[part->what];
		__u64 samples = r->sum[SUMS_FUNCTIONS][i];

		if (!samples)
			continue;
		err = places_add(&r->all->places,
				 &(struct place){ .object = f->object, .count = samples });
		if (err || r->owner[part->owner] != YES || !is_language(r, f->object))
			continue;
		r->of_frame[part->what] += samples;
		if (r->flat[i])
			err = add_flat(r, part, r->flat[i]);
	}
	return err;
}

/* Samples of a group in an object whose functions and stacks have no such owner. */
static int add_coarse(struct range *r, const struct sums_part *part, __u64 samples)
{
	struct call_tree *t = &r->to->calls;
	__u32 node = CALL_WHOLE;
	int err = call_tree_init(t) ?: add_prefix(r, CALL_WHOLE, part->group, &node) ?:
		  add_file(r, node, part->what, &node) ?:
		  add_level(r, node, SUMS_UNKNOWN, part->what, 0, &node);

	if (!err)
		t->node[node].count += samples;
	r->coarse[part->what] += samples;
	return err;
}

static int add_runs(struct range *r)
{
	const struct sums_parts *parts = &r->sums->parts[SUMS_RUNS];
	int err = 0;

	for (size_t i = 0; i < parts->n && !err; i++) {
		const struct sums_part *part = &parts->part[i];
		struct place run = { .object = part->what,
				     .group = part->group,
				     .count = r->sum[SUMS_RUNS][i] };

		if (!run.count)
			continue;
		err = places_add(&r->all->sums, &run);
		if (err || r->run[part->group] != YES || !is_language(r, part->what))
			continue;
		err = places_add(&r->to->sums, &run);
		if (!err && r->owner[part->owner] == UNKNOWN)
			err = add_coarse(r, part, run.count);
	}
	return err;
}

/* The number in the result of node @at below @owner; adds its callers first. */
static int add_node(struct range *r, __u32 owner, __u32 at, __u32 *out)
{
	const struct call_tree *from = &r->names->calls;
	struct call_tree *t = &r->to->calls;
	__u32 path[512], depth = 0, frame;
	int err;

	while (at >= CALL_ROOTS && r->of[at] != owner + 1 && depth < 512) {
		path[depth++] = at;
		at = from->node[at].parent;
	}
	if (at >= CALL_ROOTS && r->of[at] == owner + 1)
		*out = r->node[at];
	else if ((err = add_prefix(r, at < CALL_ROOTS ? at : CALL_WHOLE, owner, out)))
		return err;
	for (; depth; depth--) {
		at = path[depth - 1];
		frame = from->node[at].frame;
		err = call_tree_add(t, *out, 0, frame, out)
			      ?: add_frame(r, &from->frame[frame], &r->frame[frame]);
		if (err)
			return err;
		t->node[*out].frame = r->frame[frame] - 1;
		r->of[at] = owner + 1;
		r->node[at] = *out;
	}
	return 0;
}

static int add_stack(struct range *r, const struct sums_part *part, __u64 samples)
{
	const struct call_tree *from = &r->names->calls;
	__u32 at = part->what, node;
	int err;

	if (at >= CALL_ROOTS && !is_language(r, from->frame[from->node[at].frame].object))
		return 0;
	if (r->owner[part->owner] != YES || (at < CALL_ROOTS && r->choice->language))
		return 0;
	err = call_tree_init(&r->to->calls) ?: add_node(r, r->by_unit ? part->owner : 0, at, &node);
	if (!err)
		r->to->calls.node[node].count += samples;
	return err;
}

static const struct sums_part *part_of(const struct range *r, __u32 i)
{
	return &r->sums->parts[SUMS_STACKS].part[i];
}

static int by_owner(const void *a, const void *b, void *range)
{
	__u32 x = *(const __u32 *)a, y = *(const __u32 *)b;
	__u32 of_x = part_of(range, x)->owner, of_y = part_of(range, y)->owner;

	return of_x != of_y ? (of_x > of_y) - (of_x < of_y) : (x > y) - (x < y);
}

/* In the order of owners, so that nodes are found again below the same one. */
static int add_stacks(struct range *r)
{
	size_t all = r->sums->parts[SUMS_STACKS].n, n = 0;
	__cleanup(freep) __u32 *order = calloc(all + 1, sizeof(*order));
	int err = order ? 0 : -ENOMEM;

	for (__u32 i = 0; i < all && !err; i++) {
		if (r->sum[SUMS_STACKS][i])
			order[n++] = i;
	}
	if (n && r->by_unit)
		qsort_r(order, n, sizeof(*order), by_owner, r);
	for (size_t i = 0; i < n && !err; i++)
		err = add_stack(r, part_of(r, order[i]), r->sum[SUMS_STACKS][order[i]]);
	return err;
}

/* Takes a function of the names, or with @name NULL-free text one that stands for a whole file. */
static int take_function(struct profile *p, const char *name, __u32 object, __u64 offset,
			 __u64 samples)
{
	struct function f = { .name = name ? strdup(name) : NULL,
			      .object = object,
			      .offset = offset,
			      .samples = samples };

	if (!f.name && name)
		return -ENOMEM;
	return profile_add_function(p, &f) ?: profile_add_place(p, object, offset, 0, samples);
}

static int take_functions(struct range *r)
{
	const struct call_tree *t = &r->names->calls;
	int err = 0;

	for (size_t i = 0; i < t->nframes && !err; i++) {
		if (r->of_frame[i])
			err = take_function(r->to, t->frame[i].name, t->frame[i].object,
					    t->frame[i].offset, r->of_frame[i]);
	}
	for (__u32 i = 0; i < r->names->nobjects && !err; i++) {
		if (r->coarse[i])
			err = take_function(r->to, SUMS_UNKNOWN, i, 0, r->coarse[i]);
	}
	profile_sort_functions(r->to);
	return err;
}

static bool is_filtered(const struct sums_choice *c)
{
	bool is = c->language;

	for (int by = 0; by < ROWS_HOST; by++)
		is |= c->name[by] != NULL;
	return is;
}

static int range_init(struct range *r)
{
	const struct profile *names = r->names;
	bool lacks = false;

	for (int kind = 0; kind < SUMS_KINDS; kind++) {
		r->sum[kind] = calloc(r->sums->parts[kind].n + 1, sizeof(__u64));
		lacks |= !r->sum[kind];
	}
	r->flat = calloc(r->sums->parts[SUMS_FUNCTIONS].n + 1, sizeof(*r->flat));
	r->of_frame = calloc(names->calls.nframes + 1, sizeof(*r->of_frame));
	r->coarse = calloc(names->nobjects + 1, sizeof(*r->coarse));
	r->owner = calloc(names->ngroups + 1, 1);
	r->run = calloc(names->ngroups + 1, 1);
	r->frame = calloc(names->calls.nframes + 1, sizeof(*r->frame));
	r->node = calloc(names->calls.n + 1, sizeof(*r->node));
	r->of = calloc(names->calls.n + 1, sizeof(*r->of));
	lacks |= !r->flat || !r->of_frame || !r->coarse || !r->owner || !r->run || !r->frame ||
		 !r->node || !r->of;
	r->by_unit = r->choice->by_unit && names->ngroups > 1;
	return lacks ? -ENOMEM : judge(r);
}

int interval_sums_range(struct sums_range *out, const struct interval_sums *s,
			const struct sums_choice *c)
{
	const struct profile empty = { 0 }, *names = s->names.into ? s->names.into : &empty;
	struct range r = { .sums = s, .choice = c, .names = names };
	struct profile *p;
	int err;

	*out = (struct sums_range){ .profile = profile_borrow(names),
				    .all = profile_borrow(names) };
	r.to = p = out->profile;
	r.all = out->all;
	err = p && r.all ? range_init(&r) : -ENOMEM;
	if (!err) {
		add_intervals(&r, out);
		p->command = strdup(names->command ? names->command : "");
		err = p->command ? add_functions(&r) : -ENOMEM;
	}
	err = err ?: add_runs(&r) ?: add_stacks(&r) ?: take_functions(&r);
	range_fini(&r);
	if (err)
		return err;
	r.all->binned = r.all->total = r.all->places.sum;
	if (is_filtered(c)) {
		p->total = p->binned;
		p->unmatched = p->lost = 0;
	}
	return 0;
}

void sums_range_fini(struct sums_range *r)
{
	profile_give_back(r->profile);
	profile_give_back(r->all);
	*r = (struct sums_range){ 0 };
}
