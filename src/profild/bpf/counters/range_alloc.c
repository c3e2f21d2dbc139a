/* range_alloc.c - hands out runs of numbers: targets, regions, blocks of counters */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "range_alloc.h"

/* The taken runs, sorted; adjacent ones are merged. */
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

/* Adds the run of @n from @first on; @before is the run before it or NULL, @place the link after.
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

int range_take(struct range *r, uint32_t n, uint32_t *first)
{
	uint64_t at = 0;
	struct run **place = &r->taken, *before = NULL;

	*first = 0;
	if (!n)
		return 0;
	for (; *place && at + n > (*place)->first; place = &before->next) {
		before = *place;
		at = (uint64_t)before->first + before->n;
	}
	if (at + n > r->size)
		return -ENOSPC;

	*first = (uint32_t)at;
	return insert(before, place, (uint32_t)at, n);
}

int range_take_last(struct range *r, uint32_t n, uint32_t *first)
{
	struct run **place = &r->taken, **last = NULL, *before = NULL, *last_before = NULL;
	uint32_t at = 0, end = 0;

	*first = 0;
	if (!n)
		return 0;
	do {
		uint32_t next = *place ? (*place)->first : r->size;

		if (next - at >= n) {
			last = place;
			last_before = before;
			end = next;
		}
		before = *place;
		if (before) {
			at = before->first + before->n;
			place = &before->next;
		}
	} while (before);
	if (!last)
		return -ENOSPC;

	*first = end - n;
	return insert(last_before, last, *first, n);
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
			return; /* without memory they stay taken */
		*rest = (struct run){ .first = first + n, .next = run->next };
		rest->n = run->first + run->n - rest->first;
		run->n = first - run->first;
		run->next = rest;
	}
}
