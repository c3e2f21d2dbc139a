/* mappings.c - pprof's mappings: each executable segment of a file where its linker has put it */
#include <errno.h>
#include <stdlib.h>

#include "core/arch.h"
#include "mappings.h"
#include "base/grow.h"
#include "formats/profile_content.h"

#define PAGE 4096u

/*
 * Places of the kernel are offsets from _text. Use its link address, so as not to disclose KASLR.
 */
#define KERNEL_TEXT ARCH_KERNEL_TEXT

static __u32 *id_of(const struct mappings *m, __u32 object, __u64 offset)
{
	const struct segments *s = names_segments(m->names, object);
	const struct segment *g = segments_of_offset(s, offset);

	return &m->id[m->first[object] + (g ? (size_t)(g - s->segment) : s->n)];
}

static int add(struct mappings *m, const struct mapping *like)
{
	struct mapping *more = grow(m->mapping, m->n, sizeof(*more));

	if (!more)
		return -ENOMEM;
	m->mapping = more;
	more[m->n++] = *like;
	return 0;
}

static int add_for(struct mappings *m, const struct place *place)
{
	const struct object *o = &m->names->profile->objects[place->object];
	const struct segment *g =
		segments_of_offset(names_segments(m->names, place->object), place->offset);
	struct mapping new = { .file = o->path,
			       .build_id = o->build_id,
			       .has_functions = true,
			       .frame_type = content_frame_type(o) };

	if (o->kind == OBJECT_KERNEL)
		new.bias = KERNEL_TEXT;
	if (g) {
		new.start = g->vaddr;
		new.limit = g->vaddr + g->bytes;
		new.offset = g->offset;
		new.bias = g->vaddr - g->offset;
	} else if (place->width) {
		new.offset = place->offset / PAGE *PAGE;
		new.start = new.limit = new.bias + new.offset;
	}
	return add(m, &new);
}

/* Extends a mapping to a place. Places are sorted, so the first one has set its start. */
static void take(struct mapping *m, const struct spot *spot, bool in_segment)
{
	const struct place *p = &spot->place;
	__u64 end = m->bias + (p->offset + p->width + PAGE - 1) / PAGE * PAGE;

	if (!p->width)
		return;
	m->has_functions &= spot->function && spot->function->name;
	if (in_segment)
		return;
	if (!m->limit) { /* only has places anywhere in the object so far */
		m->offset = p->offset / PAGE * PAGE;
		m->start = m->bias + m->offset;
	}
	if (end > m->limit)
		m->limit = end;
}

/* Numbers the segments of all objects, with one more each for offsets in no segment. */
static int number(struct mappings *m)
{
	const struct profile *p = m->names->profile;
	size_t n = 0;

	m->first = calloc(p->nobjects + 1, sizeof(*m->first));
	for (size_t i = 0; m->first && i < p->nobjects; i++) {
		m->first[i] = n;
		n += p->objects[i].segments.n + 1;
	}
	m->id = calloc(n + 1, sizeof(*m->id));
	return m->first && m->id ? 0 : -ENOMEM;
}

int mappings_init(struct mappings *m, const struct names *n, const struct locations *at, bool whole)
{
	const struct mapping none = { .file = "[none]", .build_id = "", .has_functions = true };

	*m = (struct mappings){ .names = n };
	if (number(m) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < at->spots.n; i++) {
		struct spot spot = at->spots.spot[i];
		__u32 *id;

		if (whole)
			spot.place.offset = spot.place.width = 0;
		id = id_of(m, spot.place.object, spot.place.offset);
		if (!*id) {
			if (add_for(m, &spot.place) < 0)
				return -ENOMEM;
			*id = (__u32)m->n;
		}
		take(&m->mapping[*id - 1], &spot,
		     segments_of_offset(names_segments(n, spot.place.object), spot.place.offset));
	}
	return add(m, &none);
}

__u64 mappings_id(const struct mappings *m, __u32 object, __u64 offset)
{
	return *id_of(m, object, offset);
}

__u64 mappings_address(const struct mappings *m, __u64 id, __u64 offset)
{
	return m->mapping[id - 1].bias + offset;
}

void mappings_fini(struct mappings *m)
{
	free(m->mapping);
	free(m->id);
	free(m->first);
	*m = (struct mappings){ 0 };
}
