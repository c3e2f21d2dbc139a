/* function_rows.c - the functions of a profile as a table shows them: a row for each of the source
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "function_rows.h"

static bool is_generated(const struct profile *p, const struct function *f)
{
	return f->name && p->objects[f->object].kind == OBJECT_ANON;
}

static int by_object_and_name(const void *a, const void *b)
{
	const struct function *x = *(const struct function *const *)a;
	const struct function *y = *(const struct function *const *)b;
	int order = strcmp(x->name, y->name);

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return order ? order : (x > y) - (x < y); /* the profile's functions are sorted */
}

/* Sets @same of each function to the first one of its object with its name. */
static int find_same(const struct function **same, const struct profile *p)
{
	const struct function **generated = calloc(p->nfunctions + 1, sizeof(*generated));
	size_t n = 0;

	if (!generated)
		return -ENOMEM;
	for (size_t i = 0; i < p->nfunctions; i++) {
		same[i] = &p->functions[i];
		if (is_generated(p, same[i]))
			generated[n++] = same[i];
	}
	if (n)
		qsort(generated, n, sizeof(*generated), by_object_and_name);
	for (size_t i = 1; i < n; i++) {
		const struct function *before = same[generated[i - 1] - p->functions];

		if (before->object == generated[i]->object &&
		    !strcmp(before->name, generated[i]->name))
			same[generated[i] - p->functions] = before;
	}
	free(generated);
	return 0;
}

static int by_samples(const void *a, const void *b)
{
	const struct function_row *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return (x->function > y->function) - (x->function < y->function);
}

int function_rows_init(struct function_rows *rows, const struct profile *p)
{
	__cleanup(freep) const struct function **same = calloc(p->nfunctions + 1, sizeof(*same));

	rows->n = 0;
	rows->row = calloc(p->nfunctions + 1, sizeof(*rows->row));
	rows->of = calloc(p->nfunctions + 1, sizeof(*rows->of));
	if (!same || !rows->row || !rows->of || find_same(same, p) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < p->nfunctions; i++) {
		const struct function *f = &p->functions[i];
		size_t first = (size_t)(same[i] - p->functions);

		if (first == i)
			rows->of[i] = rows->n++;
		rows->of[i] = rows->of[first];
		rows->row[rows->of[i]].function = same[i];
		rows->row[rows->of[i]].samples += f->samples;
	}
	if (rows->n)
		qsort(rows->row, rows->n, sizeof(*rows->row), by_samples);
	for (size_t r = 0; r < rows->n; r++)
		rows->of[rows->row[r].function - p->functions] = r;
	for (size_t i = 0; i < p->nfunctions; i++)
		rows->of[i] = rows->of[same[i] - p->functions];
	return 0;
}

void function_rows_fini(struct function_rows *rows)
{
	free(rows->row);
	free(rows->of);
	*rows = (struct function_rows){ 0 };
}
