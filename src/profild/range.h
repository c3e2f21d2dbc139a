/* range.h - hands out runs of numbers: targets, regions, groups of counters */
#ifndef PROFIL_RANGE_H
#define PROFIL_RANGE_H

#include <stdint.h>

struct range;

/* All of 0 … @size-1 is free at first. */
int range_new(struct range **out, uint32_t size);
struct range *range_free(struct range *r);

/*
 * Takes @n numbers in a row, the first a multiple of @align, as low as there are. Returns 0 and
 * the first in *@first, or -ENOSPC or -ENOMEM. A run of 0 is at 0 and takes nothing.
 */
int range_take(struct range *r, uint32_t n, uint32_t align, uint32_t *first);

/* The same, but none below @from, a multiple of @align. */
int range_take_from(struct range *r, uint32_t from, uint32_t n, uint32_t align, uint32_t *first);

/* Takes just these, as an earlier daemon had them. -EEXIST where one is taken already. */
int range_take_at(struct range *r, uint32_t first, uint32_t n);

/* Gives back a run that was taken so, whole. With no memory left it may stay taken. */
void range_give(struct range *r, uint32_t first, uint32_t n);

#endif
