/* rows.c - the samples of a profile, summed up by what the reader wants to see */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"
#include "spots.h"

static int by_samples(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Takes over @name; NULL is -ENOMEM. There is room for it. */
static int add(struct rows *rows, char *name, __u32 object, __u64 samples, bool shared)
{
	if (!name)
		return -ENOMEM;
	rows->row[rows->n++] = (struct row){ name, samples, object, shared };
	return 0;
}

static char *function_name(const struct profile *p, const struct function *f)
{
	char name[4096];

	if (f && f->name)
		return strdup(f->name);
	if (!f)
		return strdup("?");
	snprintf(name, sizeof(name), "%s+0x%llx", profile_base_name(p->objects[f->object].path),
		 f->offset);
	return strdup(name);
}

static int add_functions(struct rows *rows, const struct profile *p)
{
	int err = 0;

	for (size_t i = 0; i < p->nfunctions && !err; i++) {
		const struct function *f = &p->functions[i];

		err = add(rows, function_name(p, f), f->object, f->samples, f->shared);
	}
	return err;
}

static int add_objects(struct rows *rows, const struct profile *p)
{
	int err = 0;

	for (__u32 i = 0; i < p->nobjects && !err; i++)
		err = add(rows, strdup(p->objects[i].path), i, 0, false);
	for (size_t i = 0; i < p->places_room && !err; i++)
		rows->row[p->places[i].object].samples += p->places[i].count;
	return err;
}

static int add_threads(struct rows *rows, const struct profile *p)
{
	int err = 0;

	for (size_t i = 0; i < p->nthreads && !err; i++) {
		const struct thread *t = &p->threads[i];
		char *name;

		if (asprintf(&name, "%s (%d, of process %d)", t->name, (int)t->tid, (int)t->pid) <
		    0)
			return -ENOMEM;
		err = add(rows, name, 0, t->samples, false);
	}
	return err;
}

/* Of spots that are on one line of one function, the names are the same. */
static char *line_name(const struct profile *p, const struct spot *s)
{
	char *function = function_name(p, s->function), *name = NULL;
	int n = -1;

	if (function && s->file && s->inlined)
		n = asprintf(&name, "%s:%d %s (in %s)", profile_base_name(s->file), s->line,
			     s->inlined, function);
	else if (function && s->file)
		n = asprintf(&name, "%s:%d %s", profile_base_name(s->file), s->line, function);
	else if (function)
		n = asprintf(&name, "?:0 %s", function);
	free(function);
	return n < 0 ? NULL : name;
}

static char *instruction_name(const struct profile *p, const struct spot *s)
{
	char *function = function_name(p, s->function), *name = NULL;
	int n = -1;

	if (function)
		n = asprintf(&name, "%s+0x%llx", function,
			     s->place.offset - (s->function ? s->function->offset : 0));
	free(function);
	return n < 0 ? NULL : name;
}

static char *spot_name(const struct profile *p, const struct spot *s, enum rows_by by)
{
	if (by == ROWS_LINE)
		return line_name(p, s);
	if (by == ROWS_INSTRUCTION)
		return instruction_name(p, s);
	return s->inlined ? strdup(s->inlined) : function_name(p, s->function);
}

static int by_name(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Rows of one name and object become one. */
static void merge(struct rows *rows)
{
	size_t n = 0;

	qsort(rows->row, rows->n, sizeof(*rows->row), by_name);
	for (size_t i = 0; i < rows->n; i++) {
		struct row *row = &rows->row[i], *last = &rows->row[n - 1];

		if (n && !by_name(last, row)) {
			last->samples += row->samples;
			last->shared |= row->shared;
			free(row->name);
		} else {
			rows->row[n++] = *row;
		}
	}
	rows->n = n;
}

static int add_spots(struct rows *rows, const struct profile *p, enum rows_by by)
{
	struct spots s;
	int err = spots_init(&s, p, by != ROWS_INSTRUCTION);

	for (size_t i = 0; i < s.n && !err; i++) {
		const struct spot *spot = &s.spot[i];

		err = add(rows, spot_name(p, spot, by), spot->place.object, spot->place.count,
			  by == ROWS_INSTRUCTION && spot->place.width > 16);
	}
	spots_fini(&s);
	if (!err && rows->n)
		merge(rows);
	return err;
}

int rows_init(struct rows *rows, const struct profile *p, enum rows_by by)
{
	int err;

	*rows = (struct rows){ .row = calloc(p->nfunctions + p->nplaces + p->nobjects +
						     p->nthreads + 1,
					     sizeof(*rows->row)) };
	if (!rows->row)
		return -ENOMEM;
	if (by == ROWS_FUNCTION)
		err = add_functions(rows, p);
	else if (by == ROWS_THREAD)
		err = add_threads(rows, p);
	else if (by == ROWS_OBJECT)
		err = add_objects(rows, p);
	else
		err = add_spots(rows, p, by);
	if (!err)
		qsort(rows->row, rows->n, sizeof(*rows->row), by_samples);
	/* Objects that were mapped, but where no tick fell. */
	while (!err && rows->n && !rows->row[rows->n - 1].samples)
		free(rows->row[--rows->n].name);
	return err;
}

void rows_fini(struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		free(rows->row[i].name);
	free(rows->row);
}

int rows_by_find(enum rows_by *by, const char *name)
{
	static const char *const names[] = {
		[ROWS_FUNCTION] = "function", [ROWS_INLINED] = "inlined",
		[ROWS_LINE] = "line",	      [ROWS_INSTRUCTION] = "instruction",
		[ROWS_OBJECT] = "object",     [ROWS_THREAD] = "thread",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(name, names[i])) {
			*by = (enum rows_by)i;
			return 0;
		}
	}
	return -EINVAL;
}
