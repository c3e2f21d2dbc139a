/* range_alloc.h - hands out runs of numbers: targets, regions, blocks of counters */
#ifndef PROFIL_PROFILD_BPF_COUNTERS_RANGE_ALLOC_H
#define PROFIL_PROFILD_BPF_COUNTERS_RANGE_ALLOC_H

#include <stdint.h>

struct range;

/* 0 … @size - 1 are free at first. */
int range_new(struct range **out, uint32_t size);
struct range *range_free(struct range *r);

/*
 * Takes the lowest @n consecutive free numbers and sets *@first. Returns 0 or -ENOSPC. A
 * run of 0 numbers is at 0 and takes nothing.
 */
int range_take(struct range *r, uint32_t n, uint32_t *first);

/* Likewise the highest. */
int range_take_last(struct range *r, uint32_t n, uint32_t *first);

/* Takes exactly these numbers, which an earlier daemon had. -EEXIST if one is taken already. */
int range_take_at(struct range *r, uint32_t first, uint32_t n);

/* Gives back a run as it was taken. */
void range_give(struct range *r, uint32_t first, uint32_t n);

#endif
