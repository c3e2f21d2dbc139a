/* die_ranges.h - finds the DWARF entry (DIE) that covers an address */
#ifndef PROFIL_SYMBOLS_DIE_RANGES_H
#define PROFIL_SYMBOLS_DIE_RANGES_H

#include <elfutils/libdw.h>
#include <stddef.h>

#include "profile/segments.h"

struct die_range {
	Dwarf_Addr low;
	Dwarf_Addr high;
	size_t outer; /* index of the enclosing range; (size_t)-1: none */
	Dwarf_Die die;
};

/* Address ranges, which can nest, at most @most. */
struct die_ranges {
	const struct segments *code; /* not owned; ranges elsewhere are of removed code */
	struct die_range *range;
	size_t n;
	size_t most;
};

/* Adds the ranges of @about, which are in r->code, for @die. Returns 0, -ENOMEM or -EFBIG. */
int die_ranges_add(struct die_ranges *r, Dwarf_Die *about, const Dwarf_Die *die);

/* Call after all ranges are added, before die_ranges_find(). */
void die_ranges_sort(struct die_ranges *r);

/* The innermost entry that covers @addr; NULL: none. */
Dwarf_Die *die_ranges_find(struct die_ranges *r, Dwarf_Addr addr);

/* The entry that encloses @die, which die_ranges_find() or this function returned; NULL: none. */
Dwarf_Die *die_ranges_outer(struct die_ranges *r, Dwarf_Die *die);

void die_ranges_fini(struct die_ranges *r);

#endif
