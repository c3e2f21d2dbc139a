/* time_slices.c - a profile divided into slices of time, in bounded memory */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "time_slices.h"
#include "profile/profile.h"

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

/*
 * Makes bands that cover all places of @p, few enough for a picture, with empty slices. Returns 0
 * or -ENOMEM.
 */
static int bands_init(struct profile *p)
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

/* Adds the places of @slice, which has the same objects, to slice @at of the bands. */
static void bands_add(struct profile *p, const struct profile *slice, size_t at)
{
	places_each(place, &slice->places) {
		struct band *band = NULL;

		if (p->nbands)
			band = bsearch(place, p->bands, p->nbands, sizeof(*band), by_place);
		if (band)
			band->slices[at] += place->count;
	}
}

int slices_init(struct slices *s, size_t max, __u64 slice_ns)
{
	*s = (struct slices){ .max = max, .slice_ns = slice_ns };
	s->slice = calloc(max + 1, sizeof(struct profile *));
	return s->slice ? 0 : -ENOMEM;
}

void slices_fini(struct slices *s)
{
	for (size_t i = 0; i < s->n; i++)
		profile_give_back(s->slice[i]);
	profile_give_back(s->last);
	free(s->slice);
}

__u64 slices_next_ns(const struct slices *s)
{
	return (s->n + 1) * s->slice_ns;
}

/* Merges pairs of slices. */
static int merge(struct slices *s)
{
	size_t n = 0;
	int err = 0;

	for (size_t i = 0; i < s->n; i += 2) {
		struct profile *first = s->slice[i];

		if (i + 1 < s->n) {
			err = err ? err : profile_add_places(first, s->slice[i + 1]);
			profile_give_back(s->slice[i + 1]);
		}
		s->slice[n++] = first;
	}
	s->n = n;
	s->slice_ns *= 2;
	return err;
}

int slices_take(struct slices *s, struct profile *now)
{
	struct profile *slice = profile_borrow(now);
	int err = slice ? profile_difference(slice, s->last, now) : -ENOMEM;

	profile_give_back(s->last);
	s->last = now;
	if (err < 0) {
		profile_give_back(slice);
		return err;
	}
	s->slice[s->n++] = slice;
	return s->n < s->max ? 0 : merge(s);
}

static void put(struct profile *p, struct function **sorted, const struct profile *slice, size_t at)
{
	for (size_t i = 0; i < slice->nfunctions; i++) {
		const struct function *f = &slice->functions[i];
		struct function *found = profile_same_function(p, sorted, f);

		if (found)
			found->slices[at] += f->samples;
	}
}

int slices_into(const struct slices *s, struct profile *p, struct symbolize_cache *cache)
{
	__cleanup(freep) struct function **sorted = profile_sorted_functions(p);
	int err = sorted ? 0 : -ENOMEM;

	p->slice_ns = s->slice_ns;
	p->nslices = s->n;
	for (size_t i = 0; i < p->nfunctions && !err; i++) {
		p->functions[i].slices = calloc(s->n + 1, sizeof(__u64));
		err = p->functions[i].slices ? 0 : -ENOMEM;
	}
	err = err ?: bands_init(p);
	for (size_t i = 0; i < s->n && !err; i++) {
		struct profile *slice = s->slice[i];

		profile_borrow_again(slice, p);
		err = symbolize(slice, cache);
		if (!err)
			put(p, sorted, slice, i);
		if (!err)
			bands_add(p, slice, i);
	}
	return err;
}
