/* series.c - sample counters by name, with a limit on the number of names */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "series.h"

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct amount *)a)->name, ((const struct amount *)b)->name);
}

static int by_samples(const void *a, const void *b)
{
	const struct amount *x = a, *y = b;

	return x->samples > y->samples ? -1 : x->samples < y->samples ? 1 : by_name(a, b);
}

/* Merges elements with the same name and sorts them, most samples first. Returns their number. */
static size_t merge(struct amount *a, size_t n)
{
	size_t out = 0;

	if (n)
		qsort(a, n, sizeof(*a), by_name);
	for (size_t i = 0; i < n; i++) {
		if (out && !strcmp(a[out - 1].name, a[i].name))
			a[out - 1].samples += a[i].samples;
		else
			a[out++] = a[i];
	}
	if (out)
		qsort(a, out, sizeof(*a), by_samples);
	return out;
}

static struct one_series *find(struct series *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++) {
		if (!strcmp(s->one[i].name, name))
			return &s->one[i];
	}
	return NULL;
}

static int name_it(struct series *s, const struct amount *a)
{
	struct one_series *new = &s->one[s->n];

	*new = (struct one_series){ .name = strdup(a->name) };
	if (!new->name)
		return -ENOMEM;
	/* After the first scrape a new series begins at 0, as no scrape had it before. */
	new->base = s->begun ? a->samples : 0;
	new->samples = a->samples - new->base;
	s->n++;
	return 0;
}

int series_update(struct series *s, struct amount *a, size_t n, __u64 total, __u64 enough)
{
	__u64 named = 0;
	int err = 0;

	n = merge(a, n);
	for (size_t i = 0; i < n && !err; i++) {
		struct one_series *one = find(s, a[i].name);

		if (one && a[i].samples > one->base + one->samples)
			one->samples = a[i].samples - one->base;
		else if (!one && s->n < SERIES_MAX && a[i].samples >= enough)
			err = name_it(s, &a[i]);
	}
	for (size_t i = 0; i < s->n; i++)
		named += s->one[i].samples;
	if (total > named && total - named > s->other)
		s->other = total - named;
	s->begun = true;
	return err;
}

void series_fini(struct series *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->one[i].name);
	*s = (struct series){ 0 };
}
