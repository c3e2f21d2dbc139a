/* line_counts.c - the samples of a function by source line */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "source_file.h"
#include "line_counts.h"

static int by_line(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;
	int order = strcmp(x->file, y->file);

	return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* Sorts @t and merges equal elements. Returns their number. */
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

/* Lists the lines with samples only. */
static int list_bare(struct listing *out, const struct tally *t, size_t n)
{
	out->memory = calloc(1, 1);
	out->line = calloc(n + 1, sizeof(*out->line));
	if (!out->memory || !out->line)
		return -ENOMEM;
	for (; out->n < n; out->n++)
		out->line[out->n] = (struct listed){ .text = out->memory,
						     .at = (__u64)t[out->n].line,
						     .samples = t[out->n].samples };
	return 0;
}

int tally_listing(struct listing *out, const struct tally *t, size_t n)
{
	struct source s;
	int err = source_init(&s, t->file);

	*out = (struct listing){ 0 };
	/* A file with too few lines was changed since. */
	if (err < 0 || (size_t)t[n - 1].line > s.n) {
		source_fini(&s);
		return list_bare(out, t, n);
	}
	out->line = calloc(s.n + 1, sizeof(*out->line));
	if (!out->line) {
		source_fini(&s);
		return -ENOMEM;
	}
	for (; out->n < s.n; out->n++)
		out->line[out->n] = (struct listed){ .text = s.line[out->n], .at = out->n + 1 };
	for (size_t i = 0; i < n; i++)
		out->line[t[i].line - 1].samples += t[i].samples;
	out->memory = steal(s.text);
	out->readable = true;
	source_fini(&s);
	return 0;
}
