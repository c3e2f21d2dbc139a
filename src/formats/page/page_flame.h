/* page_flame.h - the flame graph of a page: of one profile, or of two for comparison */
#ifndef PROFIL_FORMATS_PAGE_PAGE_FLAME_H
#define PROFIL_FORMATS_PAGE_PAGE_FLAME_H

#include <stdio.h>

#include "profile/profile.h"

/* Keeps a page below 5 MB; the rest of it is smaller than half of that. */
#define PAGE_FLAME_BYTES 2500000
#define PAGE_SLICES_BYTES 1000000

/*
 * Writes the graph's data, which flame.js draws, in @bytes at most; sums up calls that are too
 * small to draw. @b NULL: one profile only. Returns 0 or -ENOMEM.
 */
int page_flame(FILE *out, const struct profile *a, const struct profile *b, size_t bytes);

/* Writes a JSON string, with '<' escaped so that it cannot end a script element. */
void page_json_string(FILE *out, const char *s);

/* Writes @what, the share of complete stacks of @p, and why the others are truncated. */
void page_stack_ends(FILE *out, const struct profile *p, const char *what);

#endif
