/* die_ranges.c - finds the DWARF entry (DIE) that covers an address */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/count_while.h"
#include "die_ranges.h"
#include "base/grow.h"

/*
 * Debug information of code that the linker has removed starts at 0, 1 or the largest addresses, or
 * at an offset from 0. Real functions lie in one section.
 */
static bool is_live(const struct die_ranges *r, Dwarf_Addr low, Dwarf_Addr high)
{
	const struct segment *g = segments_of_address(r->code, low);

	return g && low < high && high - g->vaddr <= g->bytes;
}

int die_ranges_add(struct die_ranges *r, Dwarf_Die *about, const Dwarf_Die *die)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(about, at, &base, &low, &high)) > 0) {
		struct die_range *more;

		if (!is_live(r, low, high))
			continue;
		if (r->n >= r->most)
			return -EFBIG;
		more = grow(r->range, r->n, sizeof(*more));
		if (!more)
			return -ENOMEM;
		r->range = more;
		more[r->n++] = (struct die_range){ .low = low, .high = high, .die = *die };
	}
	return 0;
}

/* An enclosing range sorts before the enclosed one. */
static int by_address(const void *a, const void *b)
{
	const struct die_range *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	if (x->high != y->high)
		return x->high > y->high ? -1 : 1;
	/* With equal addresses: in file order, in which the inner entry follows the outer. */
	return x->die.addr < y->die.addr ? -1 : x->die.addr > y->die.addr;
}

void die_ranges_sort(struct die_ranges *r)
{
	size_t open = (size_t)-1;

	if (r->n)
		qsort(r->range, r->n, sizeof(*r->range), by_address);
	for (size_t i = 0; i < r->n; i++) {
		while (open != (size_t)-1 && r->range[open].high <= r->range[i].low)
			open = r->range[open].outer;
		r->range[i].outer = open;
		open = i;
	}
}

Dwarf_Die *die_ranges_find(struct die_ranges *r, Dwarf_Addr addr)
{
	size_t lo = COUNT_WHILE(r->n, i, r->range[i].low <= addr);

	for (size_t i = lo - 1; i != (size_t)-1; i = r->range[i].outer) {
		if (addr < r->range[i].high)
			return &r->range[i].die;
	}
	return NULL;
}

Dwarf_Die *die_ranges_outer(struct die_ranges *r, Dwarf_Die *die)
{
	struct die_range *inner =
		(struct die_range *)((char *)die - offsetof(struct die_range, die));

	return inner->outer == (size_t)-1 ? NULL : &r->range[inner->outer].die;
}

void die_ranges_fini(struct die_ranges *r)
{
	free(r->range);
	*r = (struct die_ranges){ 0 };
}
