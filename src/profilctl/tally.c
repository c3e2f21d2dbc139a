/* tally.c - the samples of a function, line by line */
#include <stdlib.h>
#include <string.h>

#include "source.h"
#include "tally.h"

#define CONTEXT_LINES 4

static int by_line(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;
	int order = strcmp(x->file, y->file);

	return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* In order; what is alike becomes one. Returns how many are left. */
static size_t merge(struct tally *t, size_t n)
{
	size_t left = 0;

	if (n)
		qsort(t, n, sizeof(*t), by_line);
	for (size_t i = 0; i < n; i++) {
		if (left && !by_line(&t[left - 1], &t[i]))
			t[left - 1].samples += t[i].samples;
		else
			t[left++] = t[i];
	}
	return left;
}

struct tally *tally_lines(const struct spots *s, const struct function *f, size_t *n)
{
	struct tally *t = calloc(s->n + 1, sizeof(*t));
	size_t lines = 0;

	for (size_t i = 0; t && i < s->n; i++) {
		const struct spot *spot = &s->spot[i];

		if (spot->function == f && spot->file)
			t[lines++] = (struct tally){ spot->file, spot->line, spot->place.count };
	}
	*n = t ? merge(t, lines) : 0;
	return t;
}

static int by_samples(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return strcmp(x->file, y->file);
}

struct tally *tally_inlined(const struct spots *s, const struct function *f, size_t *n)
{
	struct tally *t = calloc(s->n + 1, sizeof(*t));
	size_t names = 0;

	for (size_t i = 0; t && i < s->n; i++) {
		const struct spot *spot = &s->spot[i];

		if (spot->function == f && spot->inlined)
			t[names++] = (struct tally){ spot->inlined, 0, spot->place.count };
	}
	*n = t ? merge(t, names) : 0;
	if (*n)
		qsort(t, *n, sizeof(*t), by_samples);
	return t;
}

void tally_files(const struct tally *t, size_t n,
		 void (*show)(void *ctx, const struct tally *t, size_t n), void *ctx)
{
	size_t upto;

	for (size_t i = 0; i < n; i = upto) {
		for (upto = i; upto < n && !strcmp(t[upto].file, t[i].file);)
			upto++;
		show(ctx, &t[i], upto - i);
	}
}

int tally_source(const struct tally *t, size_t n,
		 void (*show)(void *ctx, int line, const char *text, __u64 samples), void *ctx)
{
	struct source s;
	int err = source_init(&s, t->file), next = 1;

	for (size_t i = 0; i < n; i++) {
		int from = t[i].line - CONTEXT_LINES, upto = t[i].line + CONTEXT_LINES;

		if (i + 1 < n && t[i + 1].line <= upto)
			upto = t[i + 1].line - 1;
		if (from > next && i)
			show(ctx, 0, NULL, 0);
		from = err ? t[i].line : from > next ? from : next;
		upto = err ? t[i].line : upto;
		for (next = from; next <= upto && (err || (size_t)next <= s.n); next++)
			show(ctx, next, err ? NULL : s.line[next - 1],
			     next == t[i].line ? t[i].samples : 0);
	}
	source_fini(&s);
	return err;
}
