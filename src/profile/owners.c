/* owners.c - what ran the objects of a profile whose places have no groups */
#include <stdlib.h>
#include <string.h>

#include "owners.h"

static const char *agree(const char *a, const char *b)
{
	return a && b && !strcmp(a, b) ? a : NULL;
}

struct owner *owners_find(const struct profile *p, const struct places *sums)
{
	struct owner *owner = calloc(p->nobjects + 1, sizeof(*owner));

	if (!owner)
		return NULL;
	places_each(place, sums) {
		const struct group *g = &p->groups[place->group];
		struct owner *o = &owner[place->object];

		if (!place->group) {
			*o = (struct owner){ .seen = true };
		} else if (!o->seen) {
			*o = owner_of_group(g);
		} else {
			o->command = agree(o->command, g->command);
			o->unit = agree(o->unit, g->unit);
			o->cgroup = agree(o->cgroup, g->cgroup);
		}
	}
	return owner;
}
