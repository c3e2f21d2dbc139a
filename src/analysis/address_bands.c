/* address_bands.c - samples by address and time, for the heat map */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#include "address_bands.h"

#define BANDS_MAX 96
#define NARROWEST 6 /* log2 of the bytes: a small function */

static bool in_band(const struct place *place, const struct band *band, unsigned int exponent)
{
	return place->object == band->object &&
	       place->offset >> exponent == band->offset >> exponent;
}

/* Covers the @n sorted @places by bands of 1 << @exponent bytes; @bands may be NULL. */
static size_t cover(const struct place *places, size_t n, unsigned int exponent, struct band *bands)
{
	struct band last = { .object = ~0u };
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		if (in_band(&places[i], &last, exponent))
			continue;
		last = (struct band){ .offset = places[i].offset >> exponent << exponent,
				      .bytes = 1ull << exponent,
				      .object = places[i].object };
		if (bands)
			bands[used] = last;
		used++;
	}
	return used;
}

int bands_init(struct profile *p)
{
	__cleanup(freep) struct place *places = places_sorted(&p->places);
	unsigned int exponent = NARROWEST;

	if (!places)
		return -ENOMEM;
	/* With very many objects even the widest bands exceed BANDS_MAX, which is accepted. */
	while (exponent < 40 && cover(places, p->places.n, exponent, NULL) > BANDS_MAX)
		exponent++;
	p->nbands = cover(places, p->places.n, exponent, NULL);
	p->bands = calloc(p->nbands + 1, sizeof(*p->bands));
	if (!p->bands)
		return -ENOMEM;
	cover(places, p->places.n, exponent, p->bands);
	for (size_t i = 0; i < p->nbands; i++) {
		p->bands[i].slices = calloc(p->nslices + 1, sizeof(__u64));
		if (!p->bands[i].slices)
			return -ENOMEM;
	}
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct place *place = a;
	const struct band *band = b;

	if (place->object != band->object)
		return place->object < band->object ? -1 : 1;
	if (place->offset < band->offset)
		return -1;
	return place->offset - band->offset >= band->bytes;
}

void bands_add(struct profile *p, const struct profile *slice, size_t at)
{
	places_each(place, &slice->places) {
		struct band *band = NULL;

		if (p->nbands)
			band = bsearch(place, p->bands, p->nbands, sizeof(*band), by_place);
		if (band)
			band->slices[at] += place->count;
	}
}
