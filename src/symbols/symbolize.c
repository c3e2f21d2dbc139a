/* symbolize.c - turns the places of a profile into functions */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "demangle.h"
#include "split.h"
#include "symbolize.h"
#include "symbolize_calls.h"
#include "elf_symbols.h"

/* The samples of a place in one function. */
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

/*
 * Finds the functions in the bytes of @place, each with its number of bytes as weight. Returns
 * their number.
 */
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
	/* Bytes between functions are padding, which is not executed. */
	for (size_t i = 0; known && i < n; i++)
		weight[i] = range[i].kind == SYMBOLS_PAGE ? 0 : weight[i];
	return n;
}

static bool is_shared(const __u32 *weight, size_t n)
{
	size_t functions = 0;

	for (size_t i = 0; i < n; i++)
		functions += weight[i] > 0;
	return functions > 1;
}

/* Samples anywhere in the object belong to a function of 0 bytes. */
static int take_whole(struct parts *parts, struct profile *p, const struct place *place)
{
	struct symbols_range none = { .kind = SYMBOLS_PAGE };
	int err = append(parts, &none, place->count, false);

	return err ? err : profile_add_sample(p, place);
}

/* Divides the samples of @place among its functions, and replaces it by a place in each. */
static int share(struct parts *parts, struct profile *p, struct symbols *s,
		 const struct place *place)
{
	struct symbols_range range[SPLIT_MAX];
	__u32 weight[SPLIT_MAX];
	__u64 count[SPLIT_MAX], at = place->offset;
	size_t n = ranges_of(s, place, range, weight);
	bool shared = is_shared(weight, n);
	struct place part;
	int err = 0;

	split(place->count, weight, n, count);
	for (size_t i = 0; i < n && !err; i++) {
		__u64 left = place->offset + place->width - at;
		__u64 upto = i + 1 < n ? range[i].upto : at + left;

		err = append(parts, &range[i], count[i], shared);
		part = (struct place){ at, count[i], place->object, (__u32)(upto - at),
				       place->group };
		if (!err)
			err = profile_add_sample(p, &part);
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
		for (; i < parts->n && parts->part[i].range.start == f.offset; i++) {
			f.samples += parts->part[i].count;
			f.shared |= parts->part[i].shared;
		}
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
			*p->objects[object].unnamed = '\0';
		for (; !err && i < n && places[i].object == object; i++)
			err = places[i].width ? share(&parts, p, s, &places[i])
					      : take_whole(&parts, p, &places[i]);
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

	if (!err)
		err = symbolize_calls(p, cache ? cache : &own);
	symbolize_cache_fini(&own);
	return err;
}
