/* amounts.c - the samples of a difference, by unit, container and file */
#include <stdio.h>
#include <stdlib.h>

#include "amounts.h"
#include "symbols/proc/container.h"

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

/* Counts the samples of each group, whose name @a has. Returns the number that has some. */
static size_t count_groups(struct amount *a, const struct profile *p, const struct difference *d)
{
	places_each(place, &d->sums) {
		if (place->group)
			a[place->group].samples += place->count;
	}
	return drop_empty(a, p->ngroups);
}

struct amount *amounts_by_unit(const struct profile *p, const struct difference *d, size_t *n)
{
	struct amount *a = calloc(p->ngroups + 1, sizeof(*a));

	if (!a)
		return NULL;
	for (size_t i = 0; i < p->ngroups; i++)
		a[i].name = unit_name(&p->groups[i]);
	*n = count_groups(a, p, d);
	return a;
}

/* Writes the name of the container of @g. */
static void name_container(char *out, size_t bytes, const struct group *g)
{
	struct container c;

	if (g->cgroup && container_of(&c, g->cgroup) && *c.id)
		snprintf(out, bytes, "%s%c%s", c.id, CONTAINER_POD, c.pod);
	else
		snprintf(out, bytes, NO_UNIT "%c", CONTAINER_POD);
}

struct amount *amounts_by_container(const struct profile *p, const struct difference *d, size_t *n)
{
	typedef char
		key[sizeof(((struct container *)0)->id) + sizeof(((struct container *)0)->pod)];
	struct amount *a = calloc(p->ngroups + 1, sizeof(*a) + sizeof(key));
	key *name;

	if (!a)
		return NULL;
	name = (key *)(a + p->ngroups + 1);
	for (size_t i = 0; i < p->ngroups; i++) {
		name_container(name[i], sizeof(name[i]), &p->groups[i]);
		a[i].name = name[i];
	}
	*n = count_groups(a, p, d);
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
