/* locations.c - places, each with its function */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "locations.h"
#include "symbols/demangle.h"
#include "base/grow.h"

static int add_function(struct locations *l, __u32 object, const struct symbols_range *r)
{
	struct named *more = grow(l->function, l->nfunctions, sizeof(*more));
	char *name = more ? demangle(r->name, r->name_len) : NULL;

	if (more)
		l->function = more;
	if (!name)
		return -ENOMEM;
	more[l->nfunctions++] = (struct named){ name, r->start, object, 0 };
	return 0;
}

/*
 * A nested function splits the outer one: the outer's places after it make a second function with
 * its name.
 */
static bool is_last(const struct locations *l, __u32 object, const struct symbols_range *r)
{
	const struct named *last = l->nfunctions ? &l->function[l->nfunctions - 1] : NULL;

	return last && last->object == object && last->start == r->start;
}

static int find_function(struct locations *l, struct names *n, struct location *at)
{
	const struct place *place = &at->place;
	struct symbols_range range;
	int err;

	if (!place->width)
		return 0;
	err = names_find(n, place->object, place->offset, &range);
	if (err < 0 || range.kind != SYMBOLS_NAMED)
		return err;
	if (!is_last(l, place->object, &range))
		err = add_function(l, place->object, &range);
	if (err < 0)
		return err;
	at->function = (__u32)l->nfunctions;
	l->function[l->nfunctions - 1].samples += place->count;
	return 0;
}

int locations_init(struct locations *l, struct names *n, const struct places *places)
{
	__cleanup(freep) struct place *sorted = places_sorted(places);
	int err = 0;

	*l = (struct locations){ .location = calloc(places->n + 1, sizeof(*l->location)) };
	if (!sorted || !l->location)
		return -ENOMEM;
	for (; l->n < places->n && !err; l->n++) {
		l->location[l->n] = (struct location){ .place = sorted[l->n] };
		err = find_function(l, n, &l->location[l->n]);
	}
	return err;
}

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = &((const struct location *)b)->place;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

size_t locations_find(const struct locations *l, const struct place *place)
{
	const struct location *found =
		bsearch(place, l->location, l->n, sizeof(*l->location), by_place);

	return (size_t)(found - l->location);
}

void locations_fini(struct locations *l)
{
	for (size_t i = 0; i < l->nfunctions; i++)
		free(l->function[i].name);
	free(l->function);
	free(l->location);
	*l = (struct locations){ 0 };
}
