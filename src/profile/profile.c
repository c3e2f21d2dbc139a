/* profile.c - a profile in memory, which recorders and file readers fill and formats write */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "base/grow.h"
#include "profile.h"

struct profile *profile_new(void)
{
	return calloc(1, sizeof(struct profile));
}

void group_fini(struct group *g)
{
	free(g->command);
	free(g->thread);
	free(g->cgroup);
	free(g->unit);
	free(g->host);
}

bool group_is_rest(const struct group *g)
{
	return !g->pid && !g->tid && !g->start_ns && !g->thread && !g->cgroup &&
	       !strcmp(g->command, GROUP_REST);
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->nobjects; i++) {
		closep(&p->objects[i].fd);
		segments_fini(&p->objects[i].segments);
		free(p->objects[i].path);
		free(p->objects[i].host);
		free(p->objects[i].jitdump);
		interpreted_free(p->objects[i].interpreted);
	}
	for (size_t i = 0; i < p->nfunctions; i++) {
		free(p->functions[i].name);
		free(p->functions[i].slices);
	}
	for (size_t i = 0; i < p->ngroups; i++)
		group_fini(&p->groups[i]);
	free(p->objects);
	free(p->groups);
	profile_clear_places(p);
	call_tree_fini(&p->calls);
	free(p->functions);
	free(p->command);
	free(p->event);
	free(p);
}

void profile_freep(struct profile **p)
{
	profile_free(*p);
}

struct profile *profile_borrow(const struct profile *from)
{
	struct profile *p = profile_new();

	if (!p)
		return NULL;
	p->pid = from->pid;
	p->host = from->host;
	p->tick_ns = from->tick_ns;
	profile_borrow_again(p, from);
	return p;
}

void profile_borrow_again(struct profile *p, const struct profile *from)
{
	p->objects = from->objects;
	p->nobjects = from->nobjects;
	p->groups = from->groups;
	p->ngroups = from->ngroups;
}

void profile_give_back(struct profile *p)
{
	if (!p)
		return;
	p->objects = NULL;
	p->nobjects = 0;
	p->groups = NULL;
	p->ngroups = 0;
	profile_free(p);
}

static enum object_kind kind_of(const char *path)
{
	if (!strcmp(path, PROFILE_KERNEL))
		return OBJECT_KERNEL;
	if (!strcmp(path, PROFILE_VDSO))
		return OBJECT_VDSO;
	if (interpreted_is_language(path))
		return OBJECT_INTERPRETED;
	return strcmp(path, PROFILE_ANON) ? OBJECT_FILE : OBJECT_ANON;
}

int profile_add_object(struct profile *p, const char *path, __u64 dev, __u64 ino, int fd,
		       __u32 *index)
{
	__cleanup(closep) int own = fd;
	struct object *o = grow(p->objects, p->nobjects, sizeof(*o));

	if (!o)
		return -ENOMEM;
	p->objects = o;
	o += p->nobjects;
	*o = (struct object){
		.kind = kind_of(path), .dev = dev, .ino = ino, .fd = -1, .owner = (uid_t)-1
	};
	if (asprintf(&o->path, "%s", path) < 0)
		return -ENOMEM;
	o->fd = steal_fd(own);
	*index = (__u32)p->nobjects++;
	return 0;
}

__u64 object_address(const struct object *o, __u64 offset)
{
	__u64 vaddr;

	if (o->kind == OBJECT_KERNEL)
		return o->kernel_text + offset;
	return segments_address(&o->segments, offset, &vaddr) ? vaddr : offset;
}

__u64 object_offset(const struct object *o, __u64 address)
{
	__u64 offset;

	if (o->kind == OBJECT_KERNEL)
		return address - o->kernel_text;
	return segments_offset(&o->segments, address, &offset) ? offset : address;
}

int profile_find_object(const struct profile *p, const char *path, __u64 dev, __u64 ino,
			__u32 *index)
{
	for (size_t i = 0; i < p->nobjects; i++) {
		const struct object *o = &p->objects[i];

		if (o->ino == ino && o->dev == dev && !strcmp(o->path, path)) {
			*index = (__u32)i;
			return 0;
		}
	}
	return -ENOENT;
}

int profile_main_object(__u32 *out, const struct profile *p)
{
	__cleanup(freep) __u64 *samples = calloc(p->nobjects + 1, sizeof(*samples));
	__u32 best = 0;

	if (!samples)
		return -ENOMEM;
	places_each(place, &p->places)
		samples[place->object] += place->count;
	for (__u32 i = 1; i < p->nobjects; i++) {
		const struct object *o = &p->objects[i], *b = &p->objects[best];

		if (o->program != b->program ? o->program : samples[i] > samples[best])
			best = i;
	}
	*out = best;
	return 0;
}

static int append_group(struct profile *p, const struct group *g)
{
	struct group *groups = grow(p->groups, p->ngroups, sizeof(*groups));

	if (!groups)
		return -ENOMEM;
	groups[p->ngroups++] = *g;
	p->groups = groups;
	return 0;
}

int profile_add_group(struct profile *p, const struct group *g, __u32 *index)
{
	struct group own = *g, others = { .command = NULL };
	int err = 0;

	if (!p->ngroups) {
		others.command = strdup(GROUP_REST);
		err = others.command ? append_group(p, &others) : -ENOMEM;
	}
	err = err ?: append_group(p, &own);
	if (err < 0) {
		group_fini(&own);
		return err;
	}
	*index = (__u32)p->ngroups - 1;
	return 0;
}

int profile_add_sample(struct profile *p, const struct place *place)
{
	int err = places_add(&p->places, place);

	p->binned = p->places.sum;
	return err;
}

int profile_add_place(struct profile *p, __u32 object, __u64 offset, __u32 width, __u64 count)
{
	struct place place = { .offset = offset, .count = count, .object = object, .width = width };

	return profile_add_sample(p, &place);
}

__u64 *profile_group_samples(const struct profile *p)
{
	const struct places *t = p->sums.n ? &p->sums : &p->places;
	__u64 *samples = calloc(p->ngroups + 1, sizeof(*samples));

	if (!samples)
		return NULL;
	places_each(place, t)
		samples[place->group] += place->count;
	/* Samples without a group. */
	samples[0] += p->places.sum > t->sum ? p->places.sum - t->sum : 0;
	return samples;
}

bool profile_has_threads(const struct profile *p)
{
	return p->ngroups > 1 && p->groups[1].tid;
}

static int by_process(const void *a, const void *b)
{
	const struct group *x = *(const struct group *const *)a;
	const struct group *y = *(const struct group *const *)b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

size_t profile_count_processes(const struct profile *p)
{
	__cleanup(freep) const struct group **used = calloc(p->ngroups + 1, sizeof(*used));
	__cleanup(freep) __u64 *samples = profile_group_samples(p);
	size_t n = 0, processes = 0;

	for (size_t i = 1; used && samples && i < p->ngroups; i++) {
		if (samples[i] && (p->groups[i].pid || p->groups[i].start_ns))
			used[n++] = &p->groups[i];
	}
	if (n)
		qsort(used, n, sizeof(*used), by_process);
	for (size_t i = 0; i < n; i++)
		processes += !i || by_process(&used[i - 1], &used[i]);
	return processes;
}

__u64 profile_kernel_samples(const struct profile *p)
{
	__u64 sum = 0;

	places_each(place, &p->places) {
		if (p->objects[place->object].kind == OBJECT_KERNEL)
			sum += place->count;
	}
	return sum;
}

int profile_fold_kernel(struct profile *p)
{
	struct places user = { 0 };
	__u64 before = p->places.sum;
	int err = places_add_all(&user, &p->folded);

	places_each(place, &p->places) {
		if (!err && p->objects[place->object].kind != OBJECT_KERNEL)
			err = places_add(&user, place);
	}
	if (err < 0) {
		places_fini(&user);
		return err;
	}
	places_fini(&p->places);
	places_fini(&p->folded);
	p->places = user;
	p->binned = user.sum;
	p->place_full = places_anywhere(&user);
	/* A sample counted during the read can be in one of the two tables only. */
	if (before > user.sum)
		p->unmatched += before - user.sum;
	else
		p->total += user.sum - before;
	return 0;
}

int profile_difference(struct profile *p, const struct profile *last, const struct profile *now)
{
	static const struct profile nothing;
	const struct profile *from = last ? last : &nothing;
	int err = places_add_difference(&p->places, &from->places, &now->places)
		      ?: places_add_difference(&p->folded, &from->folded, &now->folded)
		      ?: places_add_difference(&p->sums, &from->sums, &now->sums);

	p->place_full += now->place_full - from->place_full;
	p->binned = p->places.sum;
	return err;
}

void profile_clear_places(struct profile *p)
{
	places_fini(&p->places);
	places_fini(&p->folded);
	places_fini(&p->sums);
	p->binned = p->place_full = 0;
}

int profile_add_function(struct profile *p, const struct function *f)
{
	struct function *functions = grow(p->functions, p->nfunctions, sizeof(*f));

	if (!functions) {
		free(f->name);
		free(f->slices);
		return -ENOMEM;
	}
	functions[p->nfunctions++] = *f;
	p->functions = functions;
	return 0;
}

static int by_samples(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void profile_sort_functions(struct profile *p)
{
	if (p->nfunctions)
		qsort(p->functions, p->nfunctions, sizeof(*p->functions), by_samples);
}

static int by_place(const void *a, const void *b)
{
	const struct function *x = *(const struct function *const *)a;
	const struct function *y = *(const struct function *const *)b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

struct function **profile_sorted_functions(const struct profile *p)
{
	struct function **sorted = calloc(p->nfunctions + 1, sizeof(void *));

	for (size_t i = 0; sorted && i < p->nfunctions; i++)
		sorted[i] = &p->functions[i];
	if (sorted)
		qsort(sorted, p->nfunctions, sizeof(void *), by_place);
	return sorted;
}

struct function *profile_same_function(const struct profile *p, struct function **sorted,
				       const struct function *f)
{
	struct function **found = bsearch(&f, sorted, p->nfunctions, sizeof(void *), by_place);

	return found ? *found : NULL;
}

const char *profile_function_name(const struct profile *p, const struct function *f, char *out,
				  size_t bytes)
{
	if (f->name)
		snprintf(out, bytes, "%s", f->name);
	else
		snprintf(out, bytes, "%s+0x%llx", p->objects[f->object].path, f->offset);
	return out;
}

/* Says whether the path of an object, or its last parts, are the first @n bytes of @name. */
static bool is_object(const struct profile *p, const char *name, size_t n)
{
	for (size_t i = 0; n && i < p->nobjects; i++) {
		const char *path = p->objects[i].path;
		size_t bytes = strlen(path);

		if (bytes >= n && !memcmp(path + bytes - n, name, n) &&
		    (bytes == n || path[bytes - n - 1] == '/'))
			return true;
	}
	return false;
}

const char *profile_program(char *out, size_t bytes, const struct profile *p)
{
	const char *name = p->command + (strncmp(p->command, "./", 2) ? 0 : 2);
	size_t first = strcspn(name, " "), n = first;

	if (!strncmp(name, PROFILE_MACHINE, strlen(PROFILE_MACHINE)))
		first = n = strlen(PROFILE_MACHINE);
	while (name[n] && !is_object(p, name, n))
		n += 1 + strcspn(name + n + 1, " ");
	if (!name[n] && !is_object(p, name, n))
		n = first;
	snprintf(out, bytes, "%.*s", (int)n, name);
	return out;
}

const char *profile_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

__u64 profile_slices(const struct profile *p, const struct function *f, size_t first, size_t n)
{
	__u64 sum = 0;

	for (size_t i = first; i < first + n && i < p->nslices; i++)
		sum += f->slices[i];
	return sum;
}

double profile_percent(const struct profile *p, __u64 samples)
{
	return p->total ? 100.0 * (double)samples / (double)p->total : 0;
}
