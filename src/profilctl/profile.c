/* profile.c - the one in-memory profile, which everything is read into and written from */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/scope.h"

#include "grow.h"
#include "profile.h"

struct profile *profile_new(void)
{
	return calloc(1, sizeof(struct profile));
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->nobjects; i++) {
		closep(&p->objects[i].fd);
		free(p->objects[i].path);
	}
	for (size_t i = 0; i < p->nfunctions; i++) {
		free(p->functions[i].name);
		free(p->functions[i].slices);
	}
	for (size_t i = 0; i < p->nbands; i++)
		free(p->bands[i].slices);
	free(p->objects);
	free(p->places);
	free(p->bands);
	for (size_t i = 0; i < p->nthreads; i++)
		free(p->threads[i].name);
	free(p->threads);
	free(p->functions);
	free(p->command);
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
	p->tick_ns = from->tick_ns;
	profile_borrow_again(p, from);
	return p;
}

void profile_borrow_again(struct profile *p, const struct profile *from)
{
	p->objects = from->objects;
	p->nobjects = from->nobjects;
}

void profile_give_back(struct profile *p)
{
	if (!p)
		return;
	p->objects = NULL;
	p->nobjects = 0;
	profile_free(p);
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
	*o = (struct object){ .dev = dev, .ino = ino };
	if (asprintf(&o->path, "%s", path) < 0)
		return -ENOMEM;
	o->fd = steal_fd(own);
	*index = (__u32)p->nobjects++;
	return 0;
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
	for (size_t i = 0; i < p->places_room; i++)
		samples[p->places[i].object] += p->places[i].count;
	for (__u32 i = 1; i < p->nobjects; i++) {
		const struct object *o = &p->objects[i], *b = &p->objects[best];

		if (o->program != b->program ? o->program : samples[i] > samples[best])
			best = i;
	}
	*out = best;
	return 0;
}

/* The slot of a place, or the empty one that it would take. */
static struct place *slot(struct place *table, size_t room, __u32 object, __u64 offset, __u32 width)
{
	__u64 h = (offset ^ (__u64)object << 40 ^ (__u64)width << 56) * 0x9e3779b97f4a7c15u;
	size_t i = (size_t)(h >> 20) & (room - 1);

	while (table[i].count &&
	       (table[i].object != object || table[i].offset != offset || table[i].width != width))
		i = (i + 1) & (room - 1);
	return &table[i];
}

static int rehash(struct profile *p)
{
	size_t room = p->places_room ? 2 * p->places_room : 1024;
	struct place *table = calloc(room, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < p->places_room; i++) {
		const struct place *o = &p->places[i];

		if (o->count)
			*slot(table, room, o->object, o->offset, o->width) = *o;
	}
	free(p->places);
	p->places = table;
	p->places_room = room;
	return 0;
}

int profile_add_place(struct profile *p, __u32 object, __u64 offset, __u32 width, __u64 count)
{
	struct place *o;

	if (!count)
		return 0;
	if (2 * p->nplaces >= p->places_room && rehash(p) < 0)
		return -ENOMEM;
	o = slot(p->places, p->places_room, object, offset, width);
	if (!o->count) {
		*o = (struct place){ .object = object, .offset = offset, .width = width };
		p->nplaces++;
	}
	o->count += count;
	p->binned += count;
	return 0;
}

int profile_add_places(struct profile *p, const struct profile *from)
{
	int err = 0;

	for (size_t i = 0; i < from->places_room && !err; i++) {
		const struct place *o = &from->places[i];

		err = profile_add_place(p, o->object, o->offset, o->width, o->count);
	}
	return err;
}

__u64 profile_place_count(const struct profile *p, const struct place *place)
{
	if (!p->places_room)
		return 0;
	return slot(p->places, p->places_room, place->object, place->offset, place->width)->count;
}

int profile_difference(struct profile *p, const struct profile *last, const struct profile *now)
{
	int err = 0;

	for (size_t i = 0; i < now->places_room && !err; i++) {
		const struct place *o = &now->places[i];
		__u64 before = o->count && last ? profile_place_count(last, o) : 0;

		if (o->count > before)
			err = profile_add_place(p, o->object, o->offset, o->width,
						o->count - before);
	}
	return err;
}

void profile_clear_places(struct profile *p)
{
	free(p->places);
	p->places = NULL;
	p->nplaces = 0;
	p->places_room = 0;
	p->binned = 0;
}

static int by_offset(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->width < y->width ? -1 : x->width > y->width;
}

struct place *profile_sorted_places(const struct profile *p)
{
	struct place *sorted = calloc(p->nplaces ? p->nplaces : 1, sizeof(*sorted));
	size_t n = 0;

	if (!sorted)
		return NULL;
	for (size_t i = 0; i < p->places_room; i++) {
		if (p->places[i].count)
			sorted[n++] = p->places[i];
	}
	qsort(sorted, n, sizeof(*sorted), by_offset);
	return sorted;
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

int profile_add_thread(struct profile *p, const struct thread *t)
{
	struct thread *threads = grow(p->threads, p->nthreads, sizeof(*t));

	if (!threads) {
		free(t->name);
		return -ENOMEM;
	}
	threads[p->nthreads++] = *t;
	p->threads = threads;
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
