/* view.c - filters the samples of a profile, and folds kernel samples into user code */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "find_function.h"
#include "symbols/proc/container.h"
#include "symbols/elf/elf_file.h"
#include "symbols/symbolize.h"
#include "sample_location.h"
#include "time_slices.h"
#include "view.h"
#include "view_state.h"

/* The selected objects, groups and functions; NULL: all. */
struct passes {
	bool *object;
	bool *group;
	bool *function;
};

static void passes_fini(struct passes *k)
{
	free(k->object);
	free(k->group);
	free(k->function);
}

/* Compares literally first: a name in brackets is not a pattern. */
static bool is_like(const char *pattern, const char *name)
{
	return !strcmp(pattern, name) || !fnmatch(pattern, name, 0);
}

static bool container_passes(const struct group *g, const struct view_filter *f)
{
	struct container c;

	if (!f->container && !f->pod)
		return true;
	return g->cgroup && container_of(&c, g->cgroup) &&
	       (!f->container || container_is(&c, f->container)) &&
	       (!f->pod || !strcmp(f->pod, c.pod));
}

static bool group_passes(const struct group *g, const struct view_filter *f)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)g->pid);
	return (!f->command || is_like(f->command, g->command)) &&
	       (!f->process || !strcmp(f->process, pid) || is_like(f->process, g->command)) &&
	       (!f->unit || (g->unit && is_like(f->unit, g->unit))) && container_passes(g, f);
}

static int find_groups(struct passes *k, const struct profile *p, const struct view_filter *f)
{
	if (!view_filter_is_of_groups(f))
		return 0;
	if (p->ngroups < 2)
		return -ENODATA;
	if (p->sums.n)
		return -EOPNOTSUPP;
	k->group = calloc(p->ngroups, sizeof(*k->group));
	for (size_t i = 1; k->group && i < p->ngroups; i++)
		k->group[i] = !group_is_rest(&p->groups[i]) && group_passes(&p->groups[i], f);
	return k->group ? 0 : -ENOMEM;
}

static int find_objects(struct passes *k, const struct profile *p, const struct view_filter *f)
{
	if (!f->object)
		return 0;
	k->object = calloc(p->nobjects + 1, sizeof(*k->object));
	for (size_t i = 0; k->object && i < p->nobjects; i++) {
		const char *path = p->objects[i].path;

		k->object[i] =
			is_like(f->object, path) || is_like(f->object, profile_base_name(path));
	}
	return k->object ? 0 : -ENOMEM;
}

static int find_functions(struct passes *k, const struct profile *p, const struct view_filter *f)
{
	struct matches m;
	int err;

	if (!f->function)
		return 0;
	k->function = calloc(p->nfunctions + 1, sizeof(*k->function));
	if (!k->function)
		return -ENOMEM;
	err = matches_find(&m, p, f->function);
	for (size_t i = 0; i < m.n && !err; i++)
		k->function[m.function[i] - p->functions] = true;
	matches_fini(&m);
	return err;
}

static bool passes(const struct passes *k, const struct profile *p, const struct place *place,
		   const struct function *f)
{
	return (!k->object || k->object[place->object]) && (!k->group || k->group[place->group]) &&
	       (!k->function || (f && k->function[f - p->functions]));
}

/* Keeps the selected places of @t, regardless of functions. */
static int filter_places(struct places *t, const struct profile *p, const struct passes *k)
{
	struct passes of_place = { .object = k->object, .group = k->group };
	struct places kept = { 0 };
	int err = 0;

	places_each(place, t) {
		if (!err && passes(&of_place, p, place, NULL))
			err = places_add(&kept, place);
	}
	places_fini(t);
	*t = kept;
	return err;
}

/* Selects stacks by their innermost frames. If they have no groups, selecting some removes all. */
static int filter_calls(struct profile *p, const struct passes *k)
{
	__cleanup(freep) struct function **sorted = profile_sorted_functions(p);
	struct call_tree *t = &p->calls;

	if (!sorted)
		return -ENOMEM;
	if (k->group && !call_tree_has_groups(t))
		call_tree_fini(t);
	for (__u32 i = 0; i < t->n; i++) {
		struct place place = { .object = t->node[i].object, .group = t->node[i].group };

		if (i < CALL_ROOTS ||
		    (t->node[i].count &&
		     !passes(k, p, &place, k->function ? function_of_node(p, sorted, i) : NULL)))
			t->node[i].count = 0;
	}
	return t->n ? call_tree_prune(t) : 0;
}

static int filter(struct profile *p, const struct passes *k)
{
	struct spots s;
	size_t n = 0;
	int err = spots_init(&s, p, NULL) ?: filter_calls(p, k);

	if (!err)
		places_fini(&p->places);
	for (size_t i = 0; i < s.n && !err; i++) {
		if (!passes(k, p, &s.spot[i].place, s.spot[i].function))
			continue;
		s.spot[n++] = s.spot[i];
		err = places_add(&p->places, &s.spot[i].place);
	}
	s.n = n;
	if (!err && k->function) {
		places_fini(&p->folded);
		places_fini(&p->sums);
	}
	err = err ?: filter_places(&p->folded, p, k) ?: filter_places(&p->sums, p, k);
	if (!err)
		spots_count_functions(p, &s);
	spots_fini(&s);
	return err;
}

int view_filter(struct profile *p, const struct view_filter *f)
{
	struct passes k = { 0 };
	int err = f->state ? view_state(p, view_states(f->state)) : 0;

	if (!err && f->state)
		err = slices_of_functions(p);
	if (err || !(f->object || f->function || view_filter_is_of_groups(f)))
		return err;
	err = find_objects(&k, p, f)
		      ?: find_groups(&k, p, f)
		      ?: find_functions(&k, p, f)
		      ?: filter(p, &k);
	passes_fini(&k);
	if (err < 0)
		return err;
	p->total = p->binned = p->places.sum;
	/*
	 * If the table of places was full, stacks have more samples than places: the sums would not
	 * agree.
	 */
	if (call_tree_sum(&p->calls) > p->total)
		call_tree_fini(&p->calls);
	p->unmatched = p->lost = p->image_full = p->node_full = 0;
	/* Places in a kernel whose addresses are hidden have no width either. */
	if (p->place_full > places_anywhere(&p->places))
		p->place_full = places_anywhere(&p->places);
	p->processes = profile_count_processes(p);
	profile_sort_functions(p);
	return slices_of_functions(p);
}

const char *view_filter_text(char *out, size_t bytes, const struct view_filter *f)
{
	const struct {
		const char *what, *which;
	} all[] = { { "object", f->object },	   { "process", f->process },
		    { "command", f->command },	   { "unit", f->unit },
		    { "container", f->container }, { "pod", f->pod },
		    { "function", f->function },   { "state", f->state } };
	size_t at = 0;

	*out = '\0';
	for (size_t i = 0; i < sizeof(all) / sizeof(*all) && at < bytes; i++) {
		if (all[i].which)
			at += (size_t)snprintf(out + at, bytes - at, "%s%s %s", at ? ", " : "",
					       all[i].what, all[i].which);
	}
	return out;
}

/* Opens the files of the objects of @p that are not open, if they are unchanged. */
static void open_files(struct profile *p)
{
	for (size_t i = 0; i < p->nobjects; i++) {
		struct object *o = &p->objects[i];

		if (o->fd < 0 && o->kind == OBJECT_FILE)
			o->fd = elf_file_open(o);
		if (o->fd < 0)
			o->fd = -1;
	}
}

/* Moves the places without a known function into @rest. */
static int part_unknown(struct profile *p, struct profile *rest, const struct spots *s)
{
	int err = 0;

	places_fini(&p->places);
	for (size_t i = 0; i < s->n && !err; i++) {
		const struct place *place = &s->spot[i].place;

		err = s->spot[i].function ? places_add(&p->places, place)
					  : profile_add_sample(rest, place);
	}
	return err;
}

/* Adds the places and functions of @rest and takes ownership of their names. */
static int join(struct profile *p, struct profile *rest)
{
	int err = places_add_all(&p->places, &rest->places);

	for (size_t i = 0; i < rest->nfunctions && !err; i++) {
		err = profile_add_function(p, &rest->functions[i]);
		rest->functions[i].name = NULL;
	}
	return err;
}

/* Folds kernel frames of stacks into their innermost user frame. */
static int fold_calls(struct profile *p)
{
	__cleanup(freep) bool *kernel = calloc(p->nobjects + 1, sizeof(*kernel));

	if (!kernel)
		return -ENOMEM;
	for (size_t i = 0; i < p->nobjects; i++)
		kernel[i] = p->objects[i].kind == OBJECT_KERNEL;
	return p->calls.n ? call_tree_fold(&p->calls, kernel) : 0;
}

/* The innermost frame outside the kernel of the stack of node @at, or its root. */
static __u32 user_frame(const struct profile *p, __u32 at)
{
	const struct call_tree *t = &p->calls;

	while (at >= CALL_ROOTS && p->objects[t->node[at].object].kind == OBJECT_KERNEL)
		at = t->node[at].parent;
	return at;
}

static struct place leaf_of(const struct profile *p, __u32 at, __u64 count)
{
	const struct call_node *n = &p->calls.node[at];

	return (struct place){ .offset = n->offset,
			       .count = count,
			       .object = n->object,
			       .width = n->offset != 0,
			       .group = n->group };
}

/* What @all has at places without a group, and @some has not. */
static int add_rest(struct places *to, const struct places *all, const struct places *some)
{
	struct places of_any = { 0 };
	int err = 0;

	places_each(place, some) {
		struct place any = *place;

		any.group = 0;
		err = err ?: places_add(&of_any, &any);
	}
	places_each(place, all) {
		struct place rest = *place;
		__u64 there = places_count(&of_any, place);

		rest.count -= there < rest.count ? there : rest.count;
		err = err ?: (rest.count ? places_add(to, &rest) : 0);
	}
	places_fini(&of_any);
	return err;
}

int view_group_places(struct profile *p)
{
	const struct call_tree *t = &p->calls;
	struct places places = { 0 }, folded = { 0 }, rest = { 0 };
	int err = 0;

	if (!p->sums.n || !call_tree_has_groups(t))
		return 0;
	for (__u32 i = CALL_ROOTS; i < t->n && !err; i++) {
		__u32 user = user_frame(p, i);
		struct place leaf = leaf_of(p, i, t->node[i].count);

		if (!leaf.count)
			continue;
		err = places_add(&places, &leaf);
		leaf = leaf_of(p, user, leaf.count);
		if (!err && user != i && user >= CALL_ROOTS)
			err = places_add(&folded, &leaf);
	}
	err = err ?: add_rest(&rest, &p->places, &places) ?: places_add_all(&places, &rest);
	places_fini(&rest);
	err = err ?: add_rest(&rest, &p->folded, &folded) ?: places_add_all(&folded, &rest);
	places_fini(&rest);
	places_fini(&p->sums);
	places_fini(&p->places);
	places_fini(&p->folded);
	p->places = places;
	p->folded = folded;
	p->total += places.sum - p->binned;
	p->binned = places.sum;
	return err;
}

int view_fold_kernel(struct profile *p)
{
	struct profile *rest;
	struct spots s;
	int err = profile_fold_kernel(p);

	places_fini(&p->sums);
	err = err ?: fold_calls(p);
	if (err < 0)
		return err;
	open_files(p);
	rest = profile_borrow(p);
	err = spots_init(&s, p, NULL);
	if (!rest)
		err = -ENOMEM;
	err = err ?: part_unknown(p, rest, &s);
	if (!err) {
		spots_count_functions(p, &s);
		err = symbolize(rest, NULL);
	}
	err = err ?: join(p, rest);
	spots_fini(&s);
	profile_give_back(rest);
	profile_sort_functions(p);
	return err ?: slices_of_functions(p);
}
