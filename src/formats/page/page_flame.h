/* page_flame.h - the flame graph of a page: of one profile, or of two for comparison */
#ifndef PROFIL_FORMATS_PAGE_PAGE_FLAME_H
#define PROFIL_FORMATS_PAGE_PAGE_FLAME_H

#include <stdio.h>

#include "profile/profile.h"

/*
 * Writes the graph's data, which flame.js draws; sums up calls that are too small to draw. @b NULL:
 * one profile only. Returns 0 or -ENOMEM.
 */
int page_flame(FILE *out, const struct profile *a, const struct profile *b);

/* Writes @what, the share of complete stacks of @p, and why the others are truncated. */
void page_stack_ends(FILE *out, const struct profile *p, const char *what);

#endif
