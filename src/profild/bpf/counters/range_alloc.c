/* range_alloc.c - hands out runs of numbers: targets, regions, blocks of counters */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "range_alloc.h"

/* A byte for each number. The pages of numbers that were never taken do not exist. */
struct range {
	uint32_t size;
	uint8_t taken[];
};

int range_new(struct range **out, uint32_t size)
{
	struct range *r = calloc(1, sizeof(*r) + size);

	if (!r)
		return -ENOMEM;
	r->size = size;
	*out = r;
	return 0;
}

struct range *range_free(struct range *r)
{
	free(r);
	return NULL;
}

static int take(struct range *r, uint32_t first, uint32_t n, uint32_t *out)
{
	memset(r->taken + first, 1, n);
	*out = first;
	return 0;
}

int range_take(struct range *r, uint32_t n, uint32_t *first)
{
	uint32_t at = 0;

	*first = 0;
	while (n && at < r->size) {
		const uint8_t *gap = memchr(r->taken + at, 0, r->size - at), *busy;

		at = gap ? (uint32_t)(gap - r->taken) : r->size;
		if (n > r->size - at)
			break;
		busy = memchr(r->taken + at, 1, n);
		if (!busy)
			return take(r, at, n, first);
		at = (uint32_t)(busy - r->taken) + 1;
	}
	return n ? -ENOSPC : 0;
}

int range_take_last(struct range *r, uint32_t n, uint32_t *first)
{
	uint32_t end = r->size;

	*first = 0;
	while (n && end) {
		const uint8_t *gap = memrchr(r->taken, 0, end), *busy;

		end = gap ? (uint32_t)(gap - r->taken) + 1 : 0;
		if (n > end)
			break;
		busy = memrchr(r->taken + end - n, 1, n);
		if (!busy)
			return take(r, end - n, n, first);
		end = (uint32_t)(busy - r->taken);
	}
	return n ? -ENOSPC : 0;
}

int range_take_at(struct range *r, uint32_t first, uint32_t n)
{
	if ((uint64_t)first + n > r->size && n)
		return -EINVAL;
	if (n && memchr(r->taken + first, 1, n))
		return -EEXIST;
	if (n)
		memset(r->taken + first, 1, n);
	return 0;
}

void range_give(struct range *r, uint32_t first, uint32_t n)
{
	memset(r->taken + first, 0, n);
}
