/* cover.c - resolves ranges that claim the same addresses into ranges that do not overlap */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_while.h"
#include "base/cleanup.h"

#include "cover.h"

/* The claims that cover the address the sweep has reached, highest rank first; ended ones too. */
struct heap {
	const struct claim **claim;
	size_t n;
};

static void heap_add(struct heap *h, const struct claim *c)
{
	size_t at = h->n++;

	for (; at && h->claim[(at - 1) / 2]->rank < c->rank; at = (at - 1) / 2)
		h->claim[at] = h->claim[(at - 1) / 2];
	h->claim[at] = c;
}

static void heap_drop_first(struct heap *h)
{
	const struct claim *last = h->claim[--h->n];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < h->n) {
		if (child + 1 < h->n && h->claim[child + 1]->rank > h->claim[child]->rank)
			child++;
		if (h->claim[child]->rank <= last->rank)
			break;
		h->claim[at] = h->claim[child];
		at = child;
	}
	h->claim[at] = last;
}

static int by_start(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Gives [start, end) to @c: extends the last piece if it is of the same claim. */
static void emit(struct claim *out, size_t *n, const struct claim *c, __u64 start, __u64 end)
{
	if (*n && out[*n - 1].owner == c->owner && out[*n - 1].end == start)
		out[*n - 1].end = end;
	else
		out[(*n)++] = (struct claim){ start, end, c->rank, c->owner };
}

/*
 * Sweeps the sorted claims from the lowest address on. A piece ends where its claim does or where
 * the next claim starts, so there are at most twice as many pieces as claims.
 */
static size_t sweep(struct claim *out, struct heap *h, const struct claim *from, size_t n)
{
	size_t next = 0, pieces = 0;
	__u64 at = 0;

	while (next < n || h->n) {
		const struct claim *first;
		__u64 end;

		if (!h->n && at < from[next].start)
			at = from[next].start;
		for (; next < n && from[next].start <= at; next++)
			heap_add(h, &from[next]);
		first = h->claim[0];
		if (first->end <= at) {
			heap_drop_first(h);
			continue;
		}
		end = next < n && from[next].start < first->end ? from[next].start : first->end;
		emit(out, &pieces, first, at, end);
		at = end;
	}
	return pieces;
}

int cover(struct claim *claim, size_t *n)
{
	__cleanup(freep) struct claim *from = malloc((*n + 1) * sizeof(*from));
	__cleanup(freep) const struct claim **slots = calloc(*n + 1, sizeof(*slots));
	struct heap heap = { .claim = slots };

	if (!from || !slots)
		return -ENOMEM;
	if (*n)
		qsort(claim, *n, sizeof(*claim), by_start);
	memcpy(from, claim, *n * sizeof(*from));
	*n = sweep(claim, &heap, from, *n);
	return 0;
}

size_t cover_upto(const struct claim *claim, size_t n, __u64 address)
{
	return COUNT_WHILE(n, i, claim[i].start <= address);
}
