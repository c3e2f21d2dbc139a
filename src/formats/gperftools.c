/* gperftools.c - the legacy format of gperftools' CPU profiler, for google-pprof */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#include "synthetic_addresses.h"
#include "format.h"

static void words(FILE *out, const __u64 *word, size_t n)
{
	fwrite(word, sizeof(*word), n, out);
}

static void header(FILE *out, const struct profile *p)
{
	const __u64 word[] = { 0, 3, 0, p->tick_ns / 1000, 0 };

	words(out, word, 5);
}

/* Samples without a place get addresses that no code can have; address 0 would end the list. */
static void nowhere(FILE *out, const struct profile *p)
{
	const __u64 word[] = { p->unmatched + p->lost, 1, 1 };

	if (word[0])
		words(out, word, 3);
}

/*
 * The offset that google-pprof needs for @e: it adds the difference of address and offset of the
 * section .text, whose segment is the first one, wherever @e is.
 */
static __u64 offset_of(const struct object *o, const struct extent *e)
{
	const struct segment *text = o->segments.n ? o->segments.segment : NULL;

	return text ? object_address(o, e->offset) - (text->vaddr - text->offset) : e->offset;
}

/* Lines as in /proc/PID/maps. A blank would end the name. */
static void mappings(FILE *out, const struct profile *p, const struct extents *extents)
{
	for (size_t i = 0; i < extents->n; i++) {
		const struct extent *e = &extents->extent[i];
		const struct object *o = &p->objects[e->object];

		if (!e->start || strpbrk(o->path, " \n"))
			continue;
		fprintf(out, "%llx-%llx r-xp %08llx 00:00 %u %s\n", e->start, e->end,
			offset_of(o, e), e->object + 1, o->path);
	}
}

int gperftools_write(FILE *out, const struct profile *p)
{
	static const __u64 trailer[] = { 0, 1, 0 };
	__cleanup(extents_fini) struct extents extents = { 0 };
	__cleanup(freep) struct place *places = places_sorted(&p->places);

	if (profile_is_of_events(p))
		return -EDOM;
	if (!places || extents_init(&extents, p) < 0)
		return -ENOMEM;
	header(out, p);
	for (size_t i = 0; i < p->places.n; i++) {
		const struct place *o = &places[i];
		const __u64 word[] = { o->count, 1,
				       extents_address(&extents, o->object, o->offset) };

		words(out, word, 3);
	}
	nowhere(out, p);
	words(out, trailer, 3);
	mappings(out, p, &extents);
	return 0;
}
