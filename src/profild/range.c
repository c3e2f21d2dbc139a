/* range.c - hands out runs of numbers: targets, regions, groups of counters */
#include <errno.h>
#include <stdlib.h>

#include "core/scope.h"
#include "range.h"

/* The runs that are taken, in order; what lies between them is free. */
struct run {
	uint32_t first;
	uint32_t n;
	struct run *next;
};

struct range {
	uint32_t size;
	struct run *taken;
};

int range_new(struct range **out, uint32_t size)
{
	struct range *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->size = size;
	*out = r;
	return 0;
}

struct range *range_free(struct range *r)
{
	while (r && r->taken) {
		struct run *run = r->taken;

		r->taken = run->next;
		free(run);
	}
	free(r);
	return NULL;
}

static int insert(struct run **place, uint32_t first, uint32_t n)
{
	struct run *run = malloc(sizeof(*run));

	if (!run)
		return -ENOMEM;
	run->first = first;
	run->n = n;
	run->next = *place;
	*place = run;
	return 0;
}

int range_take(struct range *r, uint32_t n, uint32_t align, uint32_t *first)
{
	uint64_t at = 0;
	struct run **place = &r->taken;

	*first = 0;
	if (!n)
		return 0;
	for (; *place; place = &(*place)->next) {
		if (at + n <= (*place)->first)
			break;
		at = (uint64_t)(*place)->first + (*place)->n;
		at = (at + align - 1) / align * align;
	}
	if (at + n > r->size)
		return -ENOSPC;

	*first = (uint32_t)at;
	return insert(place, (uint32_t)at, n);
}

int range_take_at(struct range *r, uint32_t first, uint32_t n)
{
	struct run **place = &r->taken;

	if (!n)
		return 0;
	if ((uint64_t)first + n > r->size)
		return -EINVAL;
	while (*place && (*place)->first + (*place)->n <= first)
		place = &(*place)->next;
	if (*place && (*place)->first < first + n)
		return -EEXIST;
	return insert(place, first, n);
}

void range_give(struct range *r, uint32_t first, uint32_t n)
{
	if (!n)
		return;
	for (struct run **place = &r->taken; *place; place = &(*place)->next) {
		struct run *run = *place;

		if (run->first == first) {
			*place = run->next;
			free(run);
			return;
		}
	}
}
