/* merge.c - the sum of several profiles that were recorded separately */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "merge.h"
#include "merge_parts.h"
#include "outcomes.h"

/* Functions are merged when their number has doubled since the last time, and is at least this. */
#define FUNCTIONS_MIN 16384

/* Profiles of earlier versions have no build id of the kernel. */
static bool is_same_build(const struct object *a, const struct object *b)
{
	return !strcmp(a->build_id, b->build_id) ||
	       (a->kind == OBJECT_KERNEL && (!*a->build_id || !*b->build_id));
}

static bool is_same_name(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool is_same_object(const struct object *a, const struct object *b)
{
	return a->kind == b->kind && a->pid == b->pid && !strcmp(a->path, b->path) &&
	       is_same_build(a, b) && is_same_name(a->host, b->host);
}

static bool is_same_group(const struct group *a, const struct group *b)
{
	return a->pid == b->pid && a->tid == b->tid && a->start_ns == b->start_ns &&
	       is_same_name(a->command, b->command) && is_same_name(a->thread, b->thread) &&
	       is_same_name(a->cgroup, b->cgroup) && is_same_name(a->unit, b->unit) &&
	       is_same_name(a->host, b->host);
}

/* The slot of the group, or the free one for it. */
static __u32 *slot_of(const struct merge *m, const struct group *g)
{
	const struct index_slots *s = &m->groups;
	__u64 h = ((__u64)g->pid << 32 ^ (__u64)g->tid ^ g->start_ns) * 0x9e3779b97f4a7c15u;
	size_t at;

	h = hash_text(hash_text(hash_text(hash_text(h, g->command), g->thread), g->cgroup),
		      g->host);
	at = index_slots_first(s, h);
	while (s->slot[at] && !is_same_group(&m->into->groups[s->slot[at]], g))
		at = index_slots_next(s, at);
	return &s->slot[at];
}

static int make_room(struct merge *m)
{
	const struct profile *p = m->into;
	int anew = index_slots_reserve(&m->groups, p->ngroups);

	for (__u32 i = 1; anew > 0 && i < p->ngroups; i++)
		*slot_of(m, &p->groups[i]) = i;
	return anew < 0 ? anew : 0;
}

static int copy_name(char **out, const char *name)
{
	*out = name ? strdup(name) : NULL;
	return name && !*out ? -ENOMEM : 0;
}

int merge_group(struct merge *m, const struct group *g, __u32 *index)
{
	struct group own = { .pid = g->pid, .tid = g->tid, .uid = g->uid, .start_ns = g->start_ns };
	int err = make_room(m);
	__u32 *slot;

	if (err < 0)
		return err;
	slot = slot_of(m, g);
	*index = *slot;
	if (*slot)
		return 0;
	if (copy_name(&own.command, g->command) | copy_name(&own.thread, g->thread) |
	    copy_name(&own.cgroup, g->cgroup) | copy_name(&own.unit, g->unit) |
	    copy_name(&own.host, g->host)) {
		group_fini(&own);
		return -ENOMEM;
	}
	err = profile_add_group(m->into, &own, index);
	if (!err)
		*slot = *index;
	return err;
}

/*
 * The slot of the object, or the free one for it. Its build id is not part of the hash: it can be
 * found later.
 */
static __u32 *object_slot_of(const struct merge *m, const struct object *o)
{
	const struct index_slots *s = &m->objects;
	__u64 h = hash_text((__u64)o->pid * 0x9e3779b97f4a7c15u, o->path);
	size_t at = index_slots_first(s, hash_text(h, o->host));

	while (s->slot[at] && !is_same_object(&m->into->objects[s->slot[at] - 1], o))
		at = index_slots_next(s, at);
	return &s->slot[at];
}

static int make_object_room(struct merge *m)
{
	const struct profile *p = m->into;
	int anew = index_slots_reserve(&m->objects, p->nobjects);

	for (__u32 i = 0; anew > 0 && i < p->nobjects; i++)
		*object_slot_of(m, &p->objects[i]) = i + 1;
	return anew < 0 ? anew : 0;
}

static int add_object(struct merge *m, const struct object *o, __u32 *index)
{
	int err = make_object_room(m);
	struct profile *into = m->into;
	struct object *own;
	__u32 *slot;

	if (err < 0)
		return err;
	slot = object_slot_of(m, o);
	if (*slot) {
		*index = *slot - 1;
		own = &into->objects[*index];
		if (!*own->build_id)
			memcpy(own->build_id, o->build_id, sizeof(own->build_id));
		return 0;
	}
	err = profile_add_object(into, o->path, o->dev, o->ino, -1, index);
	if (err < 0)
		return err;
	*slot = *index + 1;
	own = &into->objects[*index];
	memcpy(own->build_id, o->build_id, sizeof(o->build_id));
	own->kernel_text = o->kernel_text;
	own->file_bytes = o->file_bytes;
	own->file_mtime_ns = o->file_mtime_ns;
	memcpy(own->unnamed, o->unnamed, sizeof(o->unnamed));
	own->program = o->program;
	own->pid = o->pid;
	return segments_copy(&own->segments, &o->segments) ?: copy_name(&own->host, o->host)
			      ?: copy_name(&own->jitdump, o->jitdump);
}

int merge_object(struct merge *m, const struct numbers *n, const struct profile *from, __u32 object,
		 __u32 *index)
{
	struct object like = from->objects[object];
	int err;

	if (n->object[object]) {
		*index = n->object[object] - 1;
		return 0;
	}
	/* Code of a process, which another host's can have the number of. */
	if (m->of_hosts && like.kind == OBJECT_ANON && !like.host)
		like.host = (char *)from->host.name;
	err = add_object(m, &like, index);
	n->object[object] = err ? 0 : *index + 1;
	return err;
}

/* Group 0 is for samples without a group, in every profile of one host. */
int merge_group_of(struct merge *m, const struct numbers *n, const struct profile *from,
		   __u32 group, __u32 *index)
{
	struct group like =
		group ? from->groups[group] : (struct group){ .command = (char *)GROUP_REST };
	int err = 0;

	if (m->of_hosts && !like.host)
		like.host = (char *)from->host.name;
	if (!n->group[group] && (group || like.host))
		err = merge_group(m, &like, &n->group[group]);
	*index = n->group[group];
	return err;
}

int merge_offset(const struct merge *m, const struct profile *from, __u32 object, __u32 own,
		 __u64 *offset)
{
	struct object *to = &m->into->objects[own];
	const struct interpreted *functions = from->objects[object].interpreted;
	const struct interpreted_function *f =
		functions ? interpreted_find(functions, *offset) : NULL;
	__u32 start;
	int err;

	if (!f)
		return 0;
	if (!to->interpreted)
		to->interpreted = calloc(1, sizeof(*to->interpreted));
	if (!to->interpreted)
		return -ENOMEM;
	err = interpreted_same(to->interpreted, f, &start);
	*offset = *offset - f->start + start;
	return err;
}

/* Places do not distinguish groups where there are sums that do. */
static int add_places(struct merge *m, const struct numbers *n, const struct profile *from,
		      struct places *into, const struct places *t)
{
	bool grouped = t == &from->sums || !from->sums.n;

	places_each(place, t) {
		struct place own = *place;
		int err = merge_object(m, n, from, place->object, &own.object) ?:
			  (grouped ? merge_group_of(m, n, from, place->group, &own.group) : 0) ?:
			  merge_offset(m, from, place->object, own.object, &own.offset) ?:
			  places_add(into, &own);

		if (err < 0)
			return err;
	}
	return 0;
}

static int add_functions(struct merge *m, const struct numbers *n, const struct profile *from)
{
	for (size_t i = 0; i < from->nfunctions; i++) {
		struct function own = from->functions[i];
		int err = merge_object(m, n, from, own.object, &own.object) ?:
			  merge_offset(m, from, from->functions[i].object, own.object,
				       &own.offset) ?:
			  copy_name(&own.name, own.name);

		own.slices = NULL;
		if (!err)
			err = profile_add_function(m->into, &own);
		if (err < 0)
			return err;
	}
	return 0;
}

/* Functions with different names at the same offset stay separate. */
static int by_function(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return strcmp(x->name ? x->name : "", y->name ? y->name : "");
}

/* Sorts the functions and merges equal ones. */
static void count_together(struct merge *m)
{
	struct profile *p = m->into;
	size_t n = 0;

	if (p->nfunctions)
		qsort(p->functions, p->nfunctions, sizeof(*p->functions), by_function);
	for (size_t i = 0; i < p->nfunctions; i++) {
		struct function *f = &p->functions[i], *last = n ? &p->functions[n - 1] : NULL;

		if (!last || by_function(last, f)) {
			p->functions[n++] = *f;
			continue;
		}
		last->samples += f->samples;
		last->size = last->size > f->size ? last->size : f->size;
		free(f->name);
	}
	p->nfunctions = m->sorted = n;
}

static void add_outcomes(const struct merge *m, const struct profile *from)
{
	struct profile *into = m->into;

	into->total += from->total;
	into->unmatched += from->unmatched;
	into->lost += from->lost;
	for (size_t i = 0; i < OUTCOMES; i++)
		*outcome_of(into, &outcomes[i]) += *outcome_of(from, &outcomes[i]);
	into->duration_ns += from->duration_ns;
	into->cpu_ns =
		m->added == 1 || (into->cpu_ns && from->cpu_ns) ? into->cpu_ns + from->cpu_ns : 0;
	if (from->started < into->started)
		into->started = from->started;
	into->binned = into->places.sum;
}

/* Initializes the sum from the first profile. */
static int begin(struct profile *into, const struct profile *from)
{
	into->host = from->host;
	into->started = from->started;
	into->started_boot_ns = from->started_boot_ns;
	into->tick_ns = from->tick_ns;
	into->period = from->period;
	return copy_name(&into->command, from->command) | copy_name(&into->event, from->event);
}

static int add(struct merge *m, const struct numbers *n, const struct profile *from)
{
	struct profile *into = m->into;
	int err = add_places(m, n, from, &into->places, &from->places) ?:
		  add_places(m, n, from, &into->folded, &from->folded) ?:
		  add_places(m, n, from, &into->sums, &from->sums) ?:
		  merge_host_rest(m, n, from) ?:
		  add_functions(m, n, from) ?: merge_stacks(m, n, from);

	add_outcomes(m, from);
	if (into->nfunctions > 2 * m->sorted + FUNCTIONS_MIN)
		count_together(m);
	return err;
}

int numbers_init(struct numbers *n, const struct profile *from)
{
	*n = (struct numbers){ calloc(from->nobjects + 1, sizeof(*n->object)),
			       calloc(from->ngroups + 1, sizeof(*n->group)),
			       calloc(from->calls.nframes + 1, sizeof(*n->frame)) };
	return n->object && n->group && n->frame ? 0 : -ENOMEM;
}

void numbers_fini(struct numbers *n)
{
	free(n->object);
	free(n->group);
	free(n->frame);
}

int merge_add(struct merge *m, const struct profile *from)
{
	struct numbers n;
	int err = 0;

	if (m->added)
		err = m->into->tick_ns == from->tick_ns && m->into->period == from->period &&
				      is_same_name(m->into->event, from->event)
			      ? 0
			      : -EDOM;
	else
		err = begin(m->into, from);
	if (!err)
		err = merge_host(m, from);
	if (err < 0)
		return err;
	m->added++;
	err = numbers_init(&n, from) ?: add(m, &n, from);
	numbers_fini(&n);
	return err;
}

int merge_end(struct merge *m)
{
	int err = merge_sums(m);

	count_together(m);
	profile_sort_functions(m->into);
	merge_forget(m);
	index_slots_fini(&m->frames);
	return err;
}

void merge_forget(struct merge *m)
{
	index_slots_fini(&m->groups);
	index_slots_fini(&m->objects);
}
