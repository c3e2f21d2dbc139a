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

/* Lines as in /proc/PID/maps. A blank would end the name. */
static void mappings(FILE *out, const struct profile *p, const struct extent *extents)
{
	for (size_t i = 0; i < p->nobjects; i++) {
		const struct extent *e = &extents[i];

		if (!e->start || strpbrk(p->objects[i].path, " \n"))
			continue;
		fprintf(out, "%llx-%llx r-xp %08llx 00:00 %zu %s\n", e->start, e->end, e->offset,
			i + 1, p->objects[i].path);
	}
}

int gperftools_write(FILE *out, const struct profile *p)
{
	static const __u64 trailer[] = { 0, 1, 0 };
	__cleanup(freep) struct extent *extents = extents_new(p);
	__cleanup(freep) struct place *places = places_sorted(&p->places);

	if (profile_is_of_events(p))
		return -EDOM;
	if (!extents || !places)
		return -ENOMEM;
	header(out, p);
	for (size_t i = 0; i < p->places.n; i++) {
		const struct place *o = &places[i];
		const __u64 word[] = { o->count, 1,
				       extent_address(&extents[o->object], o->offset) };

		words(out, word, 3);
	}
	nowhere(out, p);
	words(out, trailer, 3);
	mappings(out, p, extents);
	return 0;
}
