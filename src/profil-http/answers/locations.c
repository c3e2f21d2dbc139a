/* locations.c - places, each with its function */
#include <errno.h>
#include <stdlib.h>

#include "locations.h"

int locations_init(struct locations *l, struct names *n, const struct places *places)
{
	int err;

	*l = (struct locations){ 0 };
	err = names_symbolize(&l->profile, n, places);
	return err ? err : spots_init(&l->spots, l->profile, NULL);
}

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = &((const struct spot *)b)->place;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

size_t locations_find(const struct locations *l, const struct place *place)
{
	const struct spot *found =
		bsearch(place, l->spots.spot, l->spots.n, sizeof(*found), by_place);

	return (size_t)(found - l->spots.spot);
}

void locations_fini(struct locations *l)
{
	spots_fini(&l->spots);
	profile_give_back(l->profile);
	*l = (struct locations){ 0 };
}
