/* bolt.c - a profile for llvm-bolt, without branches: samples by function and offset */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

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

int bolt_write(FILE *out, const struct profile *p)
{
	__cleanup(symbol_names_fini) struct symbol_names names = { 0 };
	__cleanup(closep) int fd = -1;
	__u32 object;
	int err = profile_is_off_cpu(p) ? -EOPNOTSUPP : profile_main_object(&object, p);

	if (err)
		return err;
	fd = p->nobjects ? elf_file_open(&p->objects[object]) : -1;
	err = fd < 0 ? -ENODATA : symbol_names_read(&names, fd);
	return err ? err : put_places(out, p, object, &names);
}
