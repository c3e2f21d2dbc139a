/* time_slices.c - a profile divided into slices of time, in bounded memory */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#include "address_bands.h"
#include "time_slices.h"

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
	if (!err)
		err = bands_init(p);
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
