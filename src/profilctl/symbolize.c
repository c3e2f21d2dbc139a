/* symbolize.c - from places to functions */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/scope.h"

#include "demangle.h"
#include "perfmap.h"
#include "split.h"
#include "symbolize.h"
#include "symbols.h"

/* So many ticks of a place belong to this function. */
struct part {
	struct symbols_range range;
	__u64 count;
	bool shared;
};

struct parts {
	struct part *part;
	size_t n;
	size_t room;
};

static int append(struct parts *parts, const struct symbols_range *range, __u64 count, bool shared)
{
	struct part *last = parts->n ? &parts->part[parts->n - 1] : NULL;

	if (!count)
		return 0;
	if (last && last->range.start == range->start) {
		last->count += count;
		last->shared |= shared;
		return 0;
	}
	if (parts->n == parts->room) {
		size_t room = parts->room ? 2 * parts->room : 256;
		void *more = reallocarray(parts->part, room, sizeof(*last));

		if (!more)
			return -ENOMEM;
		parts->part = more;
		parts->room = room;
	}
	parts->part[parts->n++] = (struct part){ *range, count, shared };
	return 0;
}

/* Finds what stands in the bytes of @place, and how many of them; returns how many it is. */
static size_t ranges_of(struct symbols *s, const struct place *place, struct symbols_range *range,
			__u32 *weight)
{
	__u64 at = place->offset, end = place->offset + place->width;
	bool known = false;
	size_t n = 0;

	do {
		__u64 upto;

		symbols_find(s, at, &range[n]);
		upto = range[n].upto < end && n + 1 < SPLIT_MAX ? range[n].upto : end;
		weight[n] = (__u32)(upto - at);
		known |= range[n].kind != SYMBOLS_PAGE;
		at = upto;
		n++;
	} while (at < end);
	/* Between functions lies padding: nothing runs there. */
	for (size_t i = 0; known && i < n; i++)
		weight[i] = range[i].kind == SYMBOLS_PAGE ? 0 : weight[i];
	return n;
}

/* Puts the ticks of @place to its functions, and puts a place in each of them in its stead. */
static int share(struct parts *parts, struct profile *p, struct symbols *s,
		 const struct place *place)
{
	struct symbols_range range[SPLIT_MAX];
	__u32 weight[SPLIT_MAX];
	__u64 count[SPLIT_MAX], at = place->offset;
	size_t n = ranges_of(s, place, range, weight);
	int err = 0;

	split(place->count, weight, n, count);
	for (size_t i = 0; i < n && !err; i++) {
		__u64 left = place->offset + place->width - at;
		__u64 upto = i + 1 < n ? range[i].upto : at + left;

		err = append(parts, &range[i], count[i], count[i] < place->count);
		if (!err)
			err = profile_add_place(p, place->object, at, (__u32)(upto - at), count[i]);
		at = upto;
	}
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->range.start < y->range.start ? -1 : x->range.start > y->range.start;
}

/* Adds the functions of @object. */
static int add_functions(struct profile *p, __u32 object, struct parts *parts)
{
	size_t i = 0;

	if (parts->n)
		qsort(parts->part, parts->n, sizeof(*parts->part), by_start);
	while (i < parts->n) {
		const struct symbols_range *r = &parts->part[i].range;
		struct function f = { .object = object,
				      .offset = r->start,
				      .size = r->end - r->start };

		if (r->kind == SYMBOLS_NAMED) {
			f.name = demangle(r->name, r->name_len);
			if (!f.name)
				return -ENOMEM;
		}
		for (; i < parts->n && parts->part[i].range.start == f.offset; i++) {
			f.samples += parts->part[i].count;
			f.shared |= parts->part[i].shared;
		}
		if (profile_add_function(p, &f) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* An object that cannot be read has no symbols: that is no error. */
static struct symbols *symbols_of(const struct profile *p, const struct object *o)
{
	__cleanup(closep) int late = -1;
	struct symbols *s = NULL;

	if (!strcmp(o->path, "[vdso]"))
		symbols_open_vdso(&s);
	else if (!strcmp(o->path, PROFILE_ANON) && o->fd >= 0)
		symbols_open_perfmap(&s, o->fd);
	else if (!strcmp(o->path, PROFILE_ANON) && (late = perfmap_open(p->pid)) >= 0)
		symbols_open_perfmap(&s, late); /* some write it when they end */
	else if (o->fd >= 0)
		symbols_open(&s, o->fd, o->path);
	return s;
}

/* Those of the object from the cache. */
static int cached(struct symbols **out, const struct profile *p, __u32 object,
		  struct symbolize_cache *cache)
{
	struct symbols **more;

	if (object >= cache->n) {
		more = reallocarray(cache->symbols, p->nobjects, sizeof(struct symbols *));
		if (!more)
			return -ENOMEM;
		memset(more + cache->n, 0, (p->nobjects - cache->n) * sizeof(struct symbols *));
		cache->symbols = more;
		cache->n = p->nobjects;
	}
	if (!cache->symbols[object])
		cache->symbols[object] = symbols_of(p, &p->objects[object]);
	*out = cache->symbols[object];
	return 0;
}

void symbolize_cache_renew(struct symbolize_cache *cache, const struct profile *p)
{
	for (size_t i = 0; i < cache->n; i++) {
		if (!strcmp(p->objects[i].path, PROFILE_ANON))
			symbols_close(steal(cache->symbols[i]));
	}
}

void symbolize_cache_fini(struct symbolize_cache *cache)
{
	for (size_t i = 0; i < cache->n; i++)
		symbols_close(cache->symbols[i]);
	free(cache->symbols);
	*cache = (struct symbolize_cache){ 0 };
}

static int symbolize_with(struct profile *p, struct symbolize_cache *cache)
{
	__cleanup(freep) struct place *places = profile_sorted_places(p);
	struct parts parts = { 0 };
	size_t i = 0, n = p->nplaces;
	int err = places ? 0 : -ENOMEM;

	if (!err)
		profile_clear_places(p);
	while (!err && i < n) {
		__u32 object = places[i].object;
		struct symbols *s;

		parts.n = 0;
		err = cached(&s, p, object, cache);
		for (; !err && i < n && places[i].object == object; i++)
			err = share(&parts, p, s, &places[i]);
		if (!err)
			err = add_functions(p, object, &parts);
	}
	free(parts.part);
	if (!err)
		profile_sort_functions(p);
	return err;
}

int symbolize(struct profile *p, struct symbolize_cache *cache)
{
	struct symbolize_cache own = { 0 };
	int err = symbolize_with(p, cache ? cache : &own);

	symbolize_cache_fini(&own);
	return err;
}
