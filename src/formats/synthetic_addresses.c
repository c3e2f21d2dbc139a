/* synthetic_addresses.c - an address for each place: objects one after the other */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "synthetic_addresses.h"

#define FIRST_ADDRESS 0x100000000000u
#define PAGE 4096u

/* Offsets of the kernel's modules can be below 0: arm64 has them before _text. */
static bool is_below(__u64 a, __u64 b)
{
	return (__s64)(a - b) < 0;
}

static void reach(struct extents *all, const struct place *place)
{
	struct extent *e = extents_of(all, place->object, place->offset);
	__u64 lo = place->offset / PAGE * PAGE;
	__u64 hi = (place->offset + place->width + PAGE - 1) / PAGE * PAGE;

	if (!e->start || is_below(lo, e->offset))
		e->offset = lo;
	if (!e->start || is_below(e->end, hi))
		e->end = hi; /* holds an offset until here */
	e->start = 1;
}

static int allocate(struct extents *e)
{
	const struct profile *p = e->profile;

	e->first = calloc(p->nobjects + 1, sizeof(*e->first));
	for (size_t i = 0; e->first && i < p->nobjects; i++) {
		e->first[i] = e->n;
		e->n += p->objects[i].segments.n + 1;
	}
	e->extent = calloc(e->n + 1, sizeof(*e->extent));
	if (!e->first || !e->extent)
		return -ENOMEM;
	for (size_t i = 0; i < p->nobjects; i++) {
		for (size_t k = 0; k <= p->objects[i].segments.n; k++)
			e->extent[e->first[i] + k].object = (__u32)i;
	}
	return 0;
}

int extents_init(struct extents *e, const struct profile *p)
{
	__u64 address = FIRST_ADDRESS;
	int err;

	*e = (struct extents){ .profile = p };
	err = allocate(e);
	if (err < 0)
		return err;
	places_each(place, &p->places)
		reach(e, place);
	for (size_t i = CALL_ROOTS; i < p->calls.n; i++) {
		const struct call_node *n = &p->calls.node[i];

		/* A leaf, also one that no place has; the call of a return address is before it. */
		reach(e, &(struct place){ .object = n->object, .offset = n->offset, .width = 1 });
		if (n->offset)
			reach(e, &(struct place){ .object = n->object,
						  .offset = n->offset - 1,
						  .width = 1 });
	}
	for (size_t i = 0; i < e->n; i++) {
		struct extent *x = &e->extent[i];
		__u64 bytes = x->end - x->offset;

		if (!x->start)
			continue;
		x->start = address;
		x->end = address + bytes;
		address += bytes + PAGE;
	}
	return 0;
}

void extents_fini(struct extents *e)
{
	free(e->first);
	free(e->extent);
	*e = (struct extents){ 0 };
}

struct extent *extents_of(const struct extents *e, __u32 object, __u64 offset)
{
	const struct segments *s = &e->profile->objects[object].segments;
	const struct segment *g = segments_of_offset(s, offset);

	return &e->extent[e->first[object] + (g ? (size_t)(g - s->segment) : s->n)];
}

__u64 extents_address(const struct extents *e, __u32 object, __u64 offset)
{
	const struct extent *x = extents_of(e, object, offset);

	return x->start + (offset - x->offset);
}
