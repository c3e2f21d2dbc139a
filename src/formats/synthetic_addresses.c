/* synthetic_addresses.c - an address for each place: objects one after the other */
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

static void reach(struct extent *e, const struct place *place)
{
	__u64 lo = place->offset / PAGE * PAGE;
	__u64 hi = (place->offset + place->width + PAGE - 1) / PAGE * PAGE;

	if (!e->start || is_below(lo, e->offset))
		e->offset = lo;
	if (!e->start || is_below(e->end, hi))
		e->end = hi; /* holds an offset until here */
	e->start = 1;
}

struct extent *extents_new(const struct profile *p)
{
	struct extent *extents = calloc(p->nobjects + 1, sizeof(*extents));
	__u64 address = FIRST_ADDRESS;

	if (!extents)
		return NULL;
	places_each(place, &p->places)
		reach(&extents[place->object], place);
	for (size_t i = CALL_ROOTS; i < p->calls.n; i++) {
		const struct call_node *n = &p->calls.node[i];

		/* The call of a return address is before it. */
		reach(&extents[n->object],
		      &(struct place){ .offset = n->offset - !!n->offset, .width = 2 });
	}
	for (size_t i = 0; i < p->nobjects; i++) {
		struct extent *e = &extents[i];
		__u64 bytes = e->end - e->offset;

		if (!e->start)
			continue;
		e->start = address;
		e->end = address + bytes;
		address += bytes + PAGE;
	}
	return extents;
}
