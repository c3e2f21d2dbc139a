/* symbolize.c - turns the places of a profile into functions */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "demangle.h"
#include "jit_codes.h"
#include "symbolize.h"
#include "symbolize_calls.h"
#include "elf_symbols.h"

/* The samples of a place in one function. */
struct part {
	struct symbols_range range;
	__u64 count;
};

struct parts {
	struct part *part;
	size_t n;
	size_t room;
};

static int append(struct parts *parts, const struct symbols_range *range, __u64 count)
{
	struct part *last = parts->n ? &parts->part[parts->n - 1] : NULL;

	if (!count)
		return 0;
	if (last && last->range.start == range->start) {
		last->count += count;
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
	parts->part[parts->n++] = (struct part){ *range, count };
	return 0;
}

/* Finds the function of @place. Samples anywhere in the object belong to one of 0 bytes. */
static int take(struct parts *parts, struct profile *p, struct symbols *s,
		const struct place *place)
{
	struct symbols_range range = { .kind = SYMBOLS_PAGE };
	int err;

	if (place->width)
		symbols_find(s, place->offset, &range);
	err = append(parts, &range, place->count);
	return err ? err : profile_add_sample(p, place);
}

static int by_start(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->range.start < y->range.start ? -1 : x->range.start > y->range.start;
}

/* Adds the functions of @object. */
static int add_functions(struct profile *p, __u32 object, struct parts *parts)
{
	const char *path = profile_base_name(p->objects[object].path);
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
		if (!r->end && asprintf(&f.name, *path == '[' ? "%s" : "[%s]", path) < 0)
			return -ENOMEM;
		for (; i < parts->n && parts->part[i].range.start == f.offset; i++)
			f.samples += parts->part[i].count;
		if (profile_add_function(p, &f) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int symbolize_with(struct profile *p, struct symbolize_cache *cache)
{
	__cleanup(freep) struct place *places = places_sorted(&p->places);
	struct parts parts = { 0 };
	size_t i = 0, n = p->places.n;
	int err = places ? 0 : -ENOMEM;

	if (!err)
		places_fini(&p->places);
	while (!err && i < n) {
		__u32 object = places[i].object;
		struct symbols *s;

		parts.n = 0;
		err = symbolize_cached(&s, p, object, cache);
		if (!err && s)
			snprintf(p->objects[object].unnamed, PROFILE_UNNAMED_MAX, "%s",
				 symbolize_cached_unnamed(object, cache));
		err = err ?: jit_codes_identify(&p->objects[object]);
		for (; !err && i < n && places[i].object == object; i++)
			err = take(&parts, p, s, &places[i]);
		err = err ?: add_functions(p, object, &parts);
	}
	free(parts.part);
	if (!err)
		profile_sort_functions(p);
	return err;
}

int symbolize(struct profile *p, struct symbolize_cache *cache)
{
	struct symbolize_cache own = { 0 };
	int err =
		symbolize_with(p, cache ? cache : &own) ?: symbolize_calls(p, cache ? cache : &own);

	symbolize_cache_fini(&own);
	return err;
}
