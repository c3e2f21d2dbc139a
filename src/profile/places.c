/* places.c - sample counts by place, in a hash table */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "places.h"

void places_fini(struct places *t)
{
	free(t->slot);
	*t = (struct places){ 0 };
}

static bool is_same(const struct place *a, const struct place *b)
{
	return a->offset == b->offset && a->object == b->object && a->width == b->width &&
	       a->group == b->group;
}

/* The slot of @place, or the free one for it. */
static struct place *slot_of(struct place *table, size_t room, const struct place *place)
{
	__u64 h = (place->offset ^ (__u64)place->object << 40 ^ (__u64)place->width << 56) *
			  0x9e3779b97f4a7c15u ^
		  (__u64)place->group * 0xc2b2ae3d27d4eb4fu;
	size_t i = (size_t)(h >> 20) & (room - 1);

	while (table[i].count && !is_same(&table[i], place))
		i = (i + 1) & (room - 1);
	return &table[i];
}

static int rehash(struct places *t)
{
	size_t room = t->room ? 2 * t->room : 1024;
	struct place *table = calloc(room, sizeof(*table));

	if (!table)
		return -ENOMEM;
	places_each(place, t)
		*slot_of(table, room, place) = *place;
	free(t->slot);
	t->slot = table;
	t->room = room;
	return 0;
}

int places_add(struct places *t, const struct place *place)
{
	struct place *o;

	if (!place->count)
		return 0;
	if (2 * t->n >= t->room && rehash(t) < 0)
		return -ENOMEM;
	o = slot_of(t->slot, t->room, place);
	t->sum += place->count;
	if (o->count) {
		o->count += place->count;
	} else {
		*o = *place;
		t->n++;
	}
	return 0;
}

int places_add_all(struct places *t, const struct places *from)
{
	places_each(place, from) {
		if (places_add(t, place) < 0)
			return -ENOMEM;
	}
	return 0;
}

int places_add_difference(struct places *t, const struct places *last, const struct places *now)
{
	places_each(place, now) {
		__u64 before = places_count(last, place);
		struct place more = *place;

		more.count = place->count > before ? place->count - before : 0;
		if (places_add(t, &more) < 0)
			return -ENOMEM;
	}
	return 0;
}

__u64 places_count(const struct places *t, const struct place *place)
{
	return t->room ? slot_of(t->slot, t->room, place)->count : 0;
}

__u64 places_anywhere(const struct places *t)
{
	__u64 sum = 0;

	places_each(place, t)
		sum += place->width ? 0 : place->count;
	return sum;
}

const struct place *places_from(const struct places *t, size_t at)
{
	while (at < t->room && !t->slot[at].count)
		at++;
	return at < t->room ? &t->slot[at] : NULL;
}

static int by_offset(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->width != y->width)
		return x->width < y->width ? -1 : 1;
	return x->group < y->group ? -1 : x->group > y->group;
}

struct place *places_sorted(const struct places *t)
{
	struct place *sorted = calloc(t->n + 1, sizeof(*sorted));
	size_t n = 0;

	if (!sorted)
		return NULL;
	places_each(place, t)
		sorted[n++] = *place;
	qsort(sorted, n, sizeof(*sorted), by_offset);
	return sorted;
}
