/* bolt.c - a profile for llvm-bolt: samples by function and offset, or branches by address */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

#include "branches.h"
#include "format.h"
#include "symbols/elf/elf_file.h"
#include "symbols/elf/symbol_names.h"

static int by_address(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* A blank would end the name. */
static void put_name(FILE *out, const char *name)
{
	for (; *name; name++)
		fprintf(out, *name == ' ' || *name == '\\' ? "\\%c" : "%c", *name);
}

/* Writes "1 NAME OFFSET SAMPLES": 1 is for a function. Returns whether it is in one. */
static bool put_sample(FILE *out, const struct symbol_names *names, __u64 address, __u64 samples)
{
	const struct symbol_name *f = symbol_names_find(names, address);

	if (!f)
		return false;
	fprintf(out, "1 ");
	put_name(out, f->name);
	fprintf(out, " %llx %llu\n", address - f->address, samples);
	return true;
}

static int put_places(FILE *out, const struct profile *p, __u32 object,
		      const struct symbol_names *names)
{
	__cleanup(freep) struct place *place = places_sorted(&p->places);
	size_t n = 0, found = 0;

	if (!place)
		return -ENOMEM;
	for (size_t i = 0; i < p->places.n; i++) {
		if (place[i].object == object && place[i].width)
			place[n++] = place[i];
	}
	if (n)
		qsort(place, n, sizeof(*place), by_address);
	fprintf(out, "no_lbr %s\n", p->event ? p->event : "cpu-clock");
	for (size_t i = 0; i < n; i++) {
		__u64 samples = place[i].count;

		for (; i + 1 < n && place[i + 1].offset == place[i].offset; i++)
			samples += place[i + 1].count; /* of another process */
		found += put_sample(out, names,
				    object_address(&p->objects[object], place[i].offset), samples);
	}
	return found ? 0 : -ENODATA;
}

/* --- branches --------------------------------------------------------------------------------- */

/*
 * BOLT's "pre-aggregated" text: "B FROM TO COUNT MISPREDICTED" for each branch, and "F TO END COUNT"
 * for code that ran without a taken branch, which BOLT completes to the branches in it that were
 * not taken. Addresses are those of the file in hexadecimal; others are X:0.
 */
struct edge {
	bool runs; /* F */
	bool from_elsewhere;
	bool to_elsewhere;
	__u64 from;
	__u64 to;
	__u64 count;
};

static int by_edge(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->runs != y->runs)
		return x->runs ? 1 : -1;
	if (x->from_elsewhere != y->from_elsewhere)
		return x->from_elsewhere ? 1 : -1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to_elsewhere != y->to_elsewhere)
		return x->to_elsewhere ? 1 : -1;
	return x->to < y->to ? -1 : x->to > y->to;
}

/* The edges of @b in the program @o, which is number @object. Returns their number, at most 2. */
static size_t edges_of(struct edge *e, const struct branch *b, const struct object *o, __u32 object)
{
	bool from = b->from_object == object, to = b->object == object;

	if (!from && !to)
		return 0;
	e[0] = (struct edge){ .from_elsewhere = !from,
			      .to_elsewhere = !to,
			      .from = from ? object_address(o, b->from) : 0,
			      .to = to ? object_address(o, b->to) : 0,
			      .count = b->count };
	if (!to || !b->runs)
		return 1;
	e[1] = (struct edge){
		.runs = true, .from = e->to, .to = object_address(o, b->end), .count = b->count
	};
	return 2;
}

static void put_edge(FILE *out, const struct edge *e, __u64 count)
{
	fprintf(out, "%c %s%llx %s%llx %llu%s\n", e->runs ? 'F' : 'B',
		e->from_elsewhere ? "X:" : "", e->from, e->to_elsewhere ? "X:" : "", e->to, count,
		e->runs ? "" : " 0");
}

static int put_branches(FILE *out, const struct profile *p, __u32 object)
{
	__cleanup(freep) struct branch *branch = NULL;
	__cleanup(freep) struct edge *edge = NULL;
	size_t nbranches, n = 0;

	if (branches_read(&branch, &nbranches, p))
		return -ENOMEM;
	edge = calloc(2 * nbranches + 1, sizeof(*edge));
	if (!edge)
		return -ENOMEM;
	for (size_t i = 0; i < nbranches; i++)
		n += edges_of(edge + n, &branch[i], &p->objects[object], object);
	qsort(edge, n, sizeof(*edge), by_edge);
	for (size_t i = 0; i < n; i++) {
		__u64 count = edge[i].count;

		for (; i + 1 < n && !by_edge(&edge[i], &edge[i + 1]); i++)
			count += edge[i + 1].count;
		put_edge(out, &edge[i], count);
	}
	return n ? 0 : -ENODATA;
}

int bolt_write(FILE *out, const struct profile *p)
{
	__cleanup(symbol_names_fini) struct symbol_names names = { 0 };
	__cleanup(closep) int fd = -1;
	__u32 object;
	int err = profile_is_off_cpu(p) ? -EOPNOTSUPP : profile_main_object(&object, p);

	if (err)
		return err;
	if (profile_is_branches(p))
		return p->nobjects ? put_branches(out, p, object) : -ENODATA;
	fd = p->nobjects ? elf_file_open(&p->objects[object]) : -1;
	err = fd < 0 ? -ENODATA : symbol_names_read(&names, fd);
	return err ? err : put_places(out, p, object, &names);
}
