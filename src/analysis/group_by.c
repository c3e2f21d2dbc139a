/* group_by.c - sums up the samples of a profile by function, line, object, process and so on */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "function_rows.h"
#include "group_by.h"
#include "symbols/lines_store.h"
#include "symbols/proc/container.h"
#include "sample_location.h"
#include "wait_rows.h"

static int by_samples(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Takes ownership of row->name, of which NULL means -ENOMEM. The array has room. */
static int add(struct rows *rows, const struct row *row)
{
	if (!row->name)
		return -ENOMEM;
	rows->row[rows->n++] = *row;
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
	struct function_rows functions;
	int err = function_rows_init(&functions, p);

	for (size_t i = 0; i < functions.n && !err; i++) {
		const struct function_row *f = &functions.row[i];
		struct row row = { .name = function_name(p, f->function),
				   .object = f->function->object,
				   .samples = f->samples };

		row.function_len = row.name ? strlen(row.name) : 0;
		err = add(rows, &row);
	}
	function_rows_fini(&functions);
	return err;
}

static int add_objects(struct rows *rows, const struct profile *p)
{
	int err = 0;

	for (__u32 i = 0; i < p->nobjects && !err; i++)
		err = add(rows, &(struct row){ .name = strdup(p->objects[i].path), .object = i });
	if (err < 0)
		return err;
	places_each(place, &p->places)
		rows->row[place->object].samples += place->count;
	return err;
}

static char *thread_name(const struct group *g)
{
	char *name = NULL;

	if (!g->thread)
		return strdup(g->command);
	return asprintf(&name, "%s (%d, of process %d)", g->thread, (int)g->tid, (int)g->pid) < 0
		       ? NULL
		       : name;
}

static char *process_name(const struct group *g)
{
	char *name = NULL;

	return asprintf(&name, "%s (%d)", g->command, (int)g->pid) < 0 ? NULL : name;
}

static char *container_name(const struct group *g)
{
	char title[65], *name = NULL;
	struct container c;

	if (!g->cgroup || !container_of(&c, g->cgroup))
		return strdup("(no container)");
	container_title(&c, title, sizeof(title));
	if (!*c.pod)
		return strdup(title);
	return asprintf(&name, "%s (pod %s)", *title ? title : "(no container)", c.pod) < 0 ? NULL
											    : name;
}

/* Samples without a group are of the profile's host. */
static char *host_name(const struct profile *p, const struct group *g)
{
	const char *name = g && g->host ? g->host : p->host.name;

	return strdup(*name ? name : "(unknown host)");
}

char *rows_group_name(const struct profile *p, const struct group *g, enum rows_by by)
{
	if (by == ROWS_HOST)
		return host_name(p, g);
	if (group_is_rest(g))
		return strdup("(not distinguished)");
	switch (by) {
	case ROWS_THREAD:
		return thread_name(g);
	case ROWS_PROCESS:
		return process_name(g);
	case ROWS_CGROUP:
		return strdup(g->cgroup ? g->cgroup : "(no cgroup)");
	case ROWS_UNIT:
		return strdup(g->unit ? g->unit : "(no unit)");
	case ROWS_CONTAINER:
		return container_name(g);
	default:
		return strdup(g->command);
	}
}

/*
 * Says whether this kind distinguishes groups. All have a command, and perhaps a cgroup and a unit.
 */
static bool has_kind(const struct profile *p, enum rows_by by)
{
	for (size_t i = 1; i < p->ngroups; i++) {
		const struct group *g = &p->groups[i];

		if (group_is_rest(g))
			continue;
		if (by == ROWS_THREAD	 ? g->tid || g->thread
		    : by == ROWS_PROCESS ? g->pid || g->start_ns
					 : true)
			return true;
	}
	return by == ROWS_HOST || !p->binned;
}

static int add_groups(struct rows *rows, const struct profile *p, enum rows_by by)
{
	__cleanup(freep) __u64 *samples = profile_group_samples(p);
	int err = samples ? 0 : -ENOMEM;

	if (!err && !has_kind(p, by))
		return -ENOENT;
	if (!err && !p->ngroups && by == ROWS_HOST)
		err = add(rows, &(struct row){ .name = host_name(p, NULL), .samples = p->binned });
	for (size_t i = 0; i < p->ngroups && !err; i++) {
		char *name = rows_group_name(p, &p->groups[i], by);

		err = add(rows, &(struct row){ .name = name, .samples = samples[i] });
	}
	return err;
}

/* A row for @s, named @where, @function and @rest. row.name is NULL if out of memory. */
static struct row spot_row(const struct spot *s, const char *where, const char *function,
			   const char *rest)
{
	struct row row = { .object = s->place.object,
			   .offset = s->function ? s->function->offset : 0,
			   .samples = s->place.count,
			   .function_at = strlen(where),
			   .function_len = strlen(function) };

	if (asprintf(&row.name, "%s%s%s", where, function, rest) < 0)
		row.name = NULL;
	return row;
}

/* Spots on the same line of the same function get the same name. */
static struct row line_row(const struct spot *s, const char *function)
{
	char where[512] = "?:0 ", rest[4200] = "";

	if (s->file)
		snprintf(where, sizeof(where), "%s:%d ", profile_base_name(s->file), s->line);
	if (s->file && s->inlined)
		snprintf(rest, sizeof(rest), " (in %s)", function);
	return spot_row(s, where, *rest ? s->inlined : function, rest);
}

static struct row instruction_row(const struct spot *s, const char *function)
{
	char rest[32];

	snprintf(rest, sizeof(rest), "+0x%llx",
		 s->place.offset - (s->function ? s->function->offset : 0));
	return spot_row(s, "", function, rest);
}

static int add_spot(struct rows *rows, const struct profile *p, const struct spot *s,
		    enum rows_by by)
{
	__cleanup(freep) char *function = function_name(p, s->function);
	struct row row;

	if (!function)
		return -ENOMEM;
	if (by == ROWS_LINE)
		row = line_row(s, function);
	else if (by == ROWS_INSTRUCTION)
		row = instruction_row(s, function);
	else
		row = spot_row(s, "", s->inlined ? s->inlined : function, "");
	if (by == ROWS_INLINED && s->inlined)
		row.offset = 0; /* the same function wherever it is inlined */
	return add(rows, &row);
}

static int by_name(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Merges rows with the same name, object and offset. */
static void merge(struct rows *rows)
{
	size_t n = 0;

	qsort(rows->row, rows->n, sizeof(*rows->row), by_name);
	for (size_t i = 0; i < rows->n; i++) {
		struct row *row = &rows->row[i], *last = n ? &rows->row[n - 1] : NULL;

		if (last && !by_name(last, row)) {
			last->samples += row->samples;
			free(row->name);
		} else {
			rows->row[n++] = *row;
		}
	}
	rows->n = n;
}

static int add_spots(struct rows *rows, const struct profile *p, enum rows_by by)
{
	__cleanup(lines_store_fini) struct lines_store lines = { .profile = p };
	struct spots s;
	int err = spots_init(&s, p, by == ROWS_INSTRUCTION ? NULL : &lines);

	for (size_t i = 0; i < s.n && !err; i++)
		err = add_spot(rows, p, &s.spot[i], by);
	spots_fini(&s);
	if (!err && rows->n)
		merge(rows);
	return err;
}

int rows_init(struct rows *rows, const struct profile *p, enum rows_by by)
{
	int err;

	*rows = (struct rows){ .row = calloc(p->nfunctions + p->places.n + p->nobjects +
						     p->ngroups + p->calls.nwakes + CALL_STATES + 1,
					     sizeof(*rows->row)) };
	if (!rows->row)
		return -ENOMEM;
	if (by == ROWS_FUNCTION)
		err = add_functions(rows, p);
	else if (by == ROWS_OBJECT)
		err = add_objects(rows, p);
	else if (by == ROWS_WAIT || by == ROWS_LOCK)
		err = wait_rows_add(rows, p, by == ROWS_LOCK);
	else if (!rows_have_object(by))
		err = add_groups(rows, p, by);
	else
		err = add_spots(rows, p, by);
	if (!err && rows->n && !rows_have_object(by))
		merge(rows);
	if (!err)
		qsort(rows->row, rows->n, sizeof(*rows->row), by_samples);
	/* Objects that were mapped but have no samples. */
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

bool rows_have_object(enum rows_by by)
{
	return by <= ROWS_INSTRUCTION;
}

static const char *const names[] = {
	[ROWS_FUNCTION] = "function",	[ROWS_INLINED] = "inlined",
	[ROWS_LINE] = "line",		[ROWS_INSTRUCTION] = "instruction",
	[ROWS_OBJECT] = "object",	[ROWS_PROCESS] = "process",
	[ROWS_COMMAND] = "command",	[ROWS_THREAD] = "thread",
	[ROWS_CGROUP] = "cgroup",	[ROWS_UNIT] = "unit",
	[ROWS_CONTAINER] = "container", [ROWS_HOST] = "host",
	[ROWS_WAIT] = "wait",		[ROWS_LOCK] = "lock",
};

const char *rows_by_name(enum rows_by by)
{
	return names[by];
}

int rows_by_find(enum rows_by *by, const char *name)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (!strcmp(name, names[i])) {
			*by = (enum rows_by)i;
			return 0;
		}
	}
	return -EINVAL;
}
