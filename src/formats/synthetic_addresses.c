/* synthetic_addresses.c - an address for each place: invented, or that of its linker */
#include <errno.h>
#include <stdlib.h>

#include "core/arch.h"
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

	if (!e->used || is_below(lo, e->offset))
		e->offset = lo;
	if (!e->used || is_below(e->end, hi))
		e->end = hi;
	e->used = true;
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

/* Makes the extents, whose ends are offsets. */
static int find_extents(struct extents *e, const struct profile *p)
{
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
	return 0;
}

int extents_init(struct extents *e, const struct profile *p)
{
	__u64 address = FIRST_ADDRESS;
	int err = find_extents(e, p);

	for (size_t i = 0; i < e->n && !err; i++) {
		struct extent *x = &e->extent[i];
		__u64 bytes = x->end - x->offset;

		if (!x->used)
			continue;
		x->start = address;
		x->end = address + bytes;
		address += bytes + PAGE;
	}
	return err;
}

int extents_init_linked(struct extents *e, const struct profile *p)
{
	int err = find_extents(e, p);

	for (size_t i = 0; i < p->nobjects && !err; i++) {
		const struct segments *s = &p->objects[i].segments;
		struct extent *x = &e->extent[e->first[i]];
		__u64 base = p->objects[i].kind == OBJECT_KERNEL ? ARCH_KERNEL_TEXT : 0;

		for (size_t k = 0; k < s->n; k++, x++) {
			x->offset = s->segment[k].offset;
			x->start = s->segment[k].vaddr;
			x->end = x->start + s->segment[k].bytes;
		}
		x->start = base + x->offset;
		x->end += base;
	}
	return err;
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
