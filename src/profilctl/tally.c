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

struct tally *tally_lines(const struct spots *s, const struct function *f, size_t *n)
{
	struct tally *t = calloc(s->n + 1, sizeof(*t));
	size_t lines = 0;

	*n = 0;
	for (size_t i = 0; t && i < s->n; i++) {
		const struct spot *spot = &s->spot[i];

		if (spot->function == f && spot->file)
			t[lines++] = (struct tally){ spot->file, spot->line, spot->place.count };
	}
	if (lines)
		qsort(t, lines, sizeof(*t), by_line);
	for (size_t i = 0; i < lines; i++) {
		if (*n && !by_line(&t[*n - 1], &t[i]))
			t[*n - 1].samples += t[i].samples;
		else
			t[(*n)++] = t[i];
	}
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
