/* perf_mappings.c - what perf finds at an address: the mappings of a profile's objects */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "base/grow.h"
#include "perf_mappings.h"
#include "profile/each_stack.h"

/* Frames that are no function have addresses below those of objects. */
#define FRAME_BYTES 0x10000u

/* The addresses of a kernel that hides its own. */
#define KERNEL_TEXT 0xffffffff81000000u

/* A function without a file. */
struct named {
	__u64 offset;
	__u32 object;
	char *name;
};

struct names {
	struct named *named; /* sorted by place */
	size_t n;
	size_t next; /* those before it are in objects that have their mappings */
};

static void names_fini(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->named[i].name);
	free(names->named);
}

static bool is_in_file(const struct object *o)
{
	return o->kind == OBJECT_FILE || o->kind == OBJECT_KERNEL || o->kind == OBJECT_VDSO;
}

static __u64 kernel_text(const struct object *o)
{
	return o->kernel_text ? o->kernel_text : KERNEL_TEXT;
}

__u64 perf_address(const struct perf_mappings *m, __u32 object, __u64 offset)
{
	const struct object *o = &m->profile->objects[object];

	return o->kind == OBJECT_KERNEL ? kernel_text(o) + offset
					: extents_address(&m->extents, object, offset);
}

__u64 perf_frame_address(const struct perf_mappings *m, __u32 frame)
{
	return (__u64)FRAME_BYTES * (frame - m->profile->calls.nframes + 1);
}

/* Takes ownership of add->name. */
static int add(struct perf_mappings *m, const struct perf_mapping *add)
{
	struct perf_mapping *grown = grow(m->mapping, m->n, sizeof(*grown));

	if (!grown) {
		free(add->name);
		return -ENOMEM;
	}
	m->mapping = grown;
	m->mapping[m->n++] = *add;
	return 0;
}

static int add_frames(struct perf_mappings *m)
{
	const struct profile *p = m->profile;
	int err = 0;

	for (size_t i = p->calls.nframes; i < stack_frames(p) && !err; i++) {
		__u64 start = perf_frame_address(m, (__u32)i);
		struct perf_mapping frame = { .start = start, .end = start + FRAME_BYTES };
		char name[256];

		frame.name = strdup(stack_frame_name(p, i, name, sizeof(name)));
		err = frame.name ? add(m, &frame) : -ENOMEM;
	}
	return err;
}

static int name(struct names *names, __u32 object, __u64 offset, const char *text)
{
	struct named *grown = grow(names->named, names->n, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	names->named = grown;
	grown[names->n] = (struct named){ offset, object, strdup(text) };
	return grown[names->n++].name ? 0 : -ENOMEM;
}

static int by_place(const void *a, const void *b)
{
	const struct named *x = a, *y = b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Collects the functions without a file, of places and of stacks. */
static int names_init(struct names *names, const struct profile *p)
{
	char text[4096];
	int err = 0;

	for (size_t i = 0; i < p->nfunctions && !err; i++) {
		const struct function *f = &p->functions[i];

		if (f->name && !is_in_file(&p->objects[f->object]))
			err = name(names, f->object, f->offset, f->name);
	}
	for (size_t i = 0; i < p->calls.nframes && !err; i++) {
		const struct call_frame *f = &p->calls.frame[i];

		if (f->name && !is_in_file(&p->objects[f->object]))
			err = name(names, f->object, f->offset,
				   stack_frame_name(p, i, text, sizeof(text)));
	}
	if (!err && names->n)
		qsort(names->named, names->n, sizeof(*names->named), by_place);
	return err;
}

/*
 * Adds the mappings of @x, whose object has no file: a mapping for each function. Extents come in
 * the order of their objects.
 */
static int add_named(struct perf_mappings *m, const struct extent *x, struct names *names)
{
	const struct object *o = &m->profile->objects[x->object];
	struct perf_mapping part = { .start = x->start };
	const char *text = o->path;
	int err = 0;

	while (names->next < names->n && names->named[names->next].object < x->object)
		names->next++;
	for (size_t i = names->next; i < names->n && names->named[i].object == x->object && !err;
	     i++) {
		const struct named *f = &names->named[i];
		__u64 at = x->start + (f->offset - x->offset);

		if (at < x->start || at >= x->end)
			continue;
		part.end = at;
		part.name = at > part.start ? strdup(text) : NULL;
		if (at > part.start)
			err = part.name ? add(m, &part) : -ENOMEM;
		part.start = at;
		text = f->name;
	}
	part.end = x->end;
	part.name = strdup(text);
	return err ? err : part.name ? add(m, &part) : -ENOMEM;
}

static int add_extents(struct perf_mappings *m, struct names *names)
{
	int err = 0;

	for (size_t i = 0; i < m->extents.n && !err; i++) {
		const struct extent *x = &m->extents.extent[i];
		const struct object *o = &m->profile->objects[x->object];

		if (!x->used || o->kind == OBJECT_KERNEL)
			continue;
		err = is_in_file(o) ? add(m, &(struct perf_mapping){ x->start, x->end, x->offset, o,
								     NULL, 0 })
				    : add_named(m, x, names);
	}
	return err;
}

/* The kernel, which includes its modules, is all above the addresses of objects. */
static int add_kernel(struct perf_mappings *m)
{
	const struct profile *p = m->profile;
	int err = 0;

	for (size_t i = 0; i < p->nobjects && !err; i++) {
		const struct object *o = &p->objects[i];

		if (o->kind != OBJECT_KERNEL)
			continue;
		return add(m,
			   &(struct perf_mapping){ 1ull << 63, ~0ull, kernel_text(o), o, NULL, 0 });
	}
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct perf_mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int perf_mappings_init(struct perf_mappings *m, const struct profile *p)
{
	__cleanup(names_fini) struct names names = { 0 };
	int err;

	*m = (struct perf_mappings){ .profile = p };
	err = extents_init(&m->extents, p) ?: names_init(&names, p) ?: add_frames(m)
		?: add_extents(m, &names) ?: add_kernel(m);
	if (err)
		return err;
	if (m->n)
		qsort(m->mapping, m->n, sizeof(*m->mapping), by_start);
	return 0;
}

void perf_mappings_fini(struct perf_mappings *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->mapping[i].name);
	free(m->mapping);
	extents_fini(&m->extents);
	*m = (struct perf_mappings){ 0 };
}

static int by_range(const void *key, const void *element)
{
	const __u64 *address = key;
	const struct perf_mapping *m = element;

	return *address < m->start ? -1 : *address >= m->end;
}

struct perf_mapping *perf_mapping_of(const struct perf_mappings *m, __u64 address)
{
	return bsearch(&address, m->mapping, m->n, sizeof(*m->mapping), by_range);
}
