/* amounts.c - the samples of a difference, by unit and by file */
#include <stdlib.h>

#include "amounts.h"

const char *unit_name(const struct group *g)
{
	return g->unit ? g->unit : NO_UNIT;
}

/* Removes elements without samples. Returns the number of the others. */
static size_t drop_empty(struct amount *a, size_t n)
{
	size_t out = 0;

	for (size_t i = 0; i < n; i++) {
		if (a[i].samples)
			a[out++] = a[i];
	}
	return out;
}

struct amount *amounts_by_unit(const struct profile *p, const struct difference *d, size_t *n)
{
	struct amount *a = calloc(p->ngroups + 1, sizeof(*a));

	if (!a)
		return NULL;
	for (size_t i = 0; i < p->ngroups; i++)
		a[i].name = unit_name(&p->groups[i]);
	places_each(place, &d->sums) {
		if (place->group)
			a[place->group].samples += place->count;
	}
	*n = drop_empty(a, p->ngroups);
	return a;
}

struct amount *amounts_by_image(const struct profile *p, const struct difference *d, size_t *n)
{
	struct amount *a = calloc(p->nobjects + 1, sizeof(*a));

	if (!a)
		return NULL;
	for (size_t i = 0; i < p->nobjects; i++)
		a[i].name = p->objects[i].path;
	places_each(place, &d->places)
		a[place->object].samples += place->count;
	*n = drop_empty(a, p->nobjects);
	return a;
}
