/* sample_location.c - the places of samples, each with its function and source line */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#include "symbols/dwarf_lines.h"
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

static int find_lines(struct spots *s, const struct profile *p)
{
	s->lines = calloc(p->nobjects + 1, sizeof(struct lines *));
	if (!s->lines)
		return -ENOMEM;
	s->nlines = p->nobjects;
	for (size_t i = 0; i < s->n; i++) {
		struct spot *spot = &s->spot[i];
		__u32 object = spot->place.object;

		if (!i || object != spot[-1].place.object)
			lines_open(&s->lines[object], &p->objects[object]);
		if (!lines_find(s->lines[object], spot->place.offset, &spot->file, &spot->line))
			spot->file = NULL;
		spot->inlined = lines_inlined(s->lines[object], spot->place.offset);
	}
	return 0;
}

int spots_init(struct spots *s, const struct profile *p, bool with_lines)
{
	__cleanup(freep) struct function **sorted = profile_sorted_functions(p);
	__cleanup(freep) struct place *places = places_sorted(&p->places);

	*s = (struct spots){ .spot = calloc(p->places.n + 1, sizeof(*s->spot)) };
	if (!s->spot || !sorted || !places)
		return -ENOMEM;
	for (; s->n < p->places.n; s->n++)
		s->spot[s->n] = (struct spot){ .place = places[s->n] };
	find_functions(s, p, sorted);
	return with_lines ? find_lines(s, p) : 0;
}

void spots_fini(struct spots *s)
{
	for (size_t i = 0; i < s->nlines; i++)
		lines_close(s->lines[i]);
	free(s->lines);
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
