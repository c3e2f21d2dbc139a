/* listing.c - the lines or instructions of a function, and an excerpt around the hot ones */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#include "listing.h"

static int by_samples(const void *a, const void *b)
{
	const struct listed *x = *(const struct listed *const *)a;
	const struct listed *y = *(const struct listed *const *)b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return x < y ? -1 : x > y;
}

const struct listed **listing_hottest(const struct listing *l, size_t *n)
{
	const struct listed **hottest = calloc(l->n + 1, sizeof(*hottest));

	*n = 0;
	for (size_t i = 0; hottest && i < l->n; i++) {
		if (l->line[i].samples)
			hottest[(*n)++] = &l->line[i];
	}
	if (*n)
		qsort(hottest, *n, sizeof(*hottest), by_samples);
	return hottest;
}

/* Marks the lines around line @at. */
static void mark(bool *shown, size_t n, size_t at, size_t context)
{
	size_t from = at > context ? at - context : 0;
	size_t upto = n - at > context ? at + context + 1 : n;

	for (size_t i = from; i < upto; i++)
		shown[i] = true;
}

static void show(const struct listing *l, const bool *shown, const struct listing_writer *w,
		 void *ctx)
{
	size_t left_out = 0;
	__u64 samples = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (!shown[i]) {
			left_out++;
			samples += l->line[i].samples;
			continue;
		}
		if (left_out)
			w->gap(ctx, left_out, samples);
		left_out = 0;
		samples = 0;
		w->line(ctx, &l->line[i]);
	}
	if (left_out)
		w->gap(ctx, left_out, samples);
}

int listing_excerpt(const struct listing *l, struct listing_bounds bounds,
		    const struct listing_writer *w, void *ctx)
{
	size_t n;
	__cleanup(freep) const struct listed **hottest = listing_hottest(l, &n);
	__cleanup(freep) bool *shown = calloc(l->n + 1, sizeof(*shown));

	if (!hottest || !shown)
		return -ENOMEM;
	for (size_t i = 0; i < l->n && bounds.context == (size_t)-1; i++)
		shown[i] = true;
	for (size_t i = 0; i < n && i < bounds.hot && bounds.context != (size_t)-1; i++)
		mark(shown, l->n, (size_t)(hottest[i] - l->line), bounds.context);
	/* Show gaps of one line: the note about them would take a line as well. */
	for (size_t i = 1; i + 1 < l->n; i++)
		shown[i] |= shown[i - 1] && shown[i + 1];
	show(l, shown, w, ctx);
	return 0;
}

void listing_fini(struct listing *l)
{
	for (size_t i = 0; !l->memory && i < l->n; i++)
		free(l->line[i].text);
	free(l->memory);
	free(l->line);
	*l = (struct listing){ 0 };
}
