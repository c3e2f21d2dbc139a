/* range.c - hands out runs of numbers: targets, regions, groups of counters */
#include <errno.h>
#include <stdlib.h>

#include "core/scope.h"
#include "range.h"

/* The runs that are taken, in order; between two of them is always something free. */
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

/* Notes down that @n from @first on are taken; @before ends at or before them, @place is after it.
 */
static int insert(struct run *before, struct run **place, uint32_t first, uint32_t n)
{
	struct run *after = *place, *run = before;

	if (before && before->first + before->n == first) {
		before->n += n;
	} else if (after && first + n == after->first) {
		after->first = first;
		after->n += n;
		return 0;
	} else {
		run = malloc(sizeof(*run));
		if (!run)
			return -ENOMEM;
		*run = (struct run){ .first = first, .n = n, .next = after };
		*place = run;
	}
	if (after && run->first + run->n == after->first) {
		run->n += after->n;
		run->next = after->next;
		free(after);
	}
	return 0;
}

int range_take_from(struct range *r, uint32_t from, uint32_t n, uint32_t align, uint32_t *first)
{
	uint64_t at = from;
	struct run **place = &r->taken, *before = NULL;

	*first = 0;
	if (!n)
		return 0;
	for (; *place && at + n > (*place)->first; place = &before->next) {
		uint64_t end;

		before = *place;
		end = (uint64_t)before->first + before->n;
		if (end > at)
			at = (end + align - 1) / align * align;
	}
	if (at + n > r->size)
		return -ENOSPC;

	*first = (uint32_t)at;
	return insert(before, place, (uint32_t)at, n);
}

int range_take(struct range *r, uint32_t n, uint32_t align, uint32_t *first)
{
	return range_take_from(r, 0, n, align, first);
}

int range_take_at(struct range *r, uint32_t first, uint32_t n)
{
	struct run **place = &r->taken, *before = NULL;

	if (!n)
		return 0;
	if ((uint64_t)first + n > r->size)
		return -EINVAL;
	for (; *place && (*place)->first + (*place)->n <= first; place = &before->next)
		before = *place;
	if (*place && (*place)->first < first + n)
		return -EEXIST;
	return insert(before, place, first, n);
}

void range_give(struct range *r, uint32_t first, uint32_t n)
{
	struct run **place = &r->taken, *run, *rest;

	while (n && *place && (*place)->first + (*place)->n <= first)
		place = &(*place)->next;
	run = *place;
	if (!n || !run)
		return;
	if (run->n == n) {
		*place = run->next;
		free(run);
	} else if (run->first == first) {
		run->first += n;
		run->n -= n;
	} else if (run->first + run->n == first + n) {
		run->n -= n;
	} else {
		rest = malloc(sizeof(*rest));
		if (!rest)
			return; /* they stay taken: the price of having no memory left */
		*rest = (struct run){ .first = first + n, .next = run->next };
		rest->n = run->first + run->n - rest->first;
		run->n = first - run->first;
		run->next = rest;
	}
}
