/* sample_location.c - the places of samples, each with its function and source line */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#include "symbols/lines_store.h"
#include "sample_location.h"

/* The innermost of the first @upto functions that contains the place. */
static const struct function *holding(struct function **sorted, size_t upto,
				      const struct place *place)
{
	for (size_t i = upto; i-- > 0 && sorted[i]->object == place->object;) {
		if (place->offset - sorted[i]->offset < sorted[i]->size ||
		    (!place->width && !sorted[i]->size))
			return sorted[i];
	}
	return NULL;
}

static void find_functions(struct spots *s, const struct profile *p, struct function **sorted)
{
	size_t next = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct place *place = &s->spot[i].place;

		while (next < p->nfunctions && (sorted[next]->object < place->object ||
						(sorted[next]->object == place->object &&
						 sorted[next]->offset <= place->offset)))
			next++;
		s->spot[i].function = holding(sorted, next, place);
	}
}

static void find_lines(struct spots *s, struct lines_store *store)
{
	for (size_t i = 0; i < s->n; i++) {
		struct spot *spot = &s->spot[i];
		struct lines *lines = lines_store_find(store, spot->place.object);

		if (!lines_find(lines, spot->place.offset, &spot->file, &spot->line))
			spot->file = NULL;
		spot->inlined = lines_inlined(lines, spot->place.offset);
	}
}

int spots_init(struct spots *s, const struct profile *p, struct lines_store *lines)
{
	__cleanup(freep) struct function **sorted = profile_sorted_functions(p);
	__cleanup(freep) struct place *places = places_sorted(&p->places);

	*s = (struct spots){ .spot = calloc(p->places.n + 1, sizeof(*s->spot)) };
	if (!s->spot || !sorted || !places)
		return -ENOMEM;
	for (; s->n < p->places.n; s->n++)
		s->spot[s->n] = (struct spot){ .place = places[s->n] };
	find_functions(s, p, sorted);
	if (lines)
		find_lines(s, lines);
	return 0;
}

void spots_fini(struct spots *s)
{
	free(s->spot);
}

void spots_count_functions(struct profile *p, const struct spots *kept)
{
	size_t n = 0;

	for (size_t i = 0; i < p->nfunctions; i++)
		p->functions[i].samples = 0;
	for (size_t i = 0; i < kept->n; i++) {
		const struct function *f = kept->spot[i].function;

		if (f)
			p->functions[f - p->functions].samples += kept->spot[i].place.count;
	}
	for (size_t i = 0; i < p->nfunctions; i++) {
		if (p->functions[i].samples) {
			p->functions[n++] = p->functions[i];
			continue;
		}
		free(p->functions[i].name);
		free(p->functions[i].slices);
	}
	p->nfunctions = n;
}

struct function *function_of_node(const struct profile *p, struct function **sorted, __u32 at)
{
	const struct call_tree *t = &p->calls;
	const struct call_frame *f;

	while (call_tree_is_inlined(t, at))
		at = t->node[at].parent;
	f = &t->frame[t->node[at].frame];
	return profile_same_function(
		p, sorted, &(struct function){ .object = f->object, .offset = f->offset });
}
