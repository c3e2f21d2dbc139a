/* profiles.c - a difference as a profile: pprof's format, OTLP, folded, the page without a spool */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "formats/format.h"
#include "symbols/symbolize.h"
#include "profile/stack_ends.h"
#include "profiles.h"

/* What the samples of a profile stand for. */
enum profile_samples {
	STACKS,	     /* a stack, or without stacks a place */
	WITH_PLACES, /* both */
	BY_GROUPS,   /* a group and a whole object */
};

/*
 * Adds the groups' sums as places anywhere in an object; samples that they lack have no group. The
 * kernel counts a sample at its place first, then in the sum, so a snapshot in between lacks the
 * latter; what is above the places of an object is left out.
 */
static int add_groups(struct profile *p, const struct difference *d)
{
	__cleanup(freep) __u64 *rest = calloc(p->nobjects + 1, sizeof(*rest));
	int err = rest ? 0 : -ENOMEM;

	if (err < 0)
		return err;
	places_each(place, &d->places)
		rest[place->object] += place->count;
	places_each(place, &d->sums) {
		__u64 *left = &rest[place->object];
		struct place whole = { .object = place->object, .group = place->group };

		whole.count = place->count < *left ? place->count : *left;
		*left -= whole.count;
		if (whole.count && !err)
			err = places_add(&p->places, &whole);
	}
	for (__u32 i = 0; i < p->nobjects && !err; i++) {
		if (rest[i])
			err = places_add(&p->places,
					 &(struct place){ .object = i, .count = rest[i] });
	}
	return err;
}

/* Takes the samples of @d; without @places those are left out if there are stacks. */
static int take_samples(struct profile *p, struct difference *d, bool places)
{
	p->calls = d->stacks;
	d->stacks = (struct call_tree){ 0 };
	return (places || !has_stacks(p) ? places_add_all(&p->places, &d->places) : 0)
		       ?: places_add_all(&p->sums, &d->sums);
}

/* Makes a profile that shares the objects of @n; profile_give_back() frees it. */
static int profile_of(struct profile **out, struct names *n, struct difference *d,
		      enum profile_samples samples)
{
	struct profile *p = profile_borrow(n->profile);
	int err = !p			 ? -ENOMEM
		  : samples == BY_GROUPS ? add_groups(p, d)
					 : take_samples(p, d, samples == WITH_PLACES);

	if (!err) {
		__u64 stackless = d->outcomes.total - call_tree_sum(&p->calls);

		p->tick_ns = d->to->head.period_ns;
		p->started = (time_t)(d->began_ns / 1000000000u);
		p->duration_ns = d->duration_ns;
		p->total = d->outcomes.total;
		p->unmatched = d->outcomes.unmatched;
		/* A stack can be counted a moment before the outcome of its sample. */
		p->lost = d->outcomes.lost < stackless ? d->outcomes.lost : stackless;
		p->binned = p->total - p->unmatched - p->lost;
		p->group_full = d->to->head.group_full - (d->from ? d->from->head.group_full : 0);
		p->command = strdup(PROFILE_MACHINE);
		err = p->command ? symbolize(p, &n->symbols) : -ENOMEM;
	}
	if (err < 0)
		profile_give_back(p);
	else
		*out = p;
	return err;
}

static int write_folded(FILE *f, const struct profile *p, __u64 began_ns)
{
	return folded_write(f, p);
}

/* OTLP is compressed by none: a reader that takes it sends it on. */
static const struct {
	const char *type;
	const char *name; /* of a file; NULL: none */
	int (*write)(FILE *f, const struct profile *p, __u64 began_ns);
	enum profile_samples samples;
	bool has_inlined;
} formats[] = {
	[PROFILES_PPROF] = { "application/octet-stream", "profile.pb.gz",
			     pprof_write_for_collectors, STACKS, false },
	[PROFILES_PPROF_BY_GROUP] = { "application/octet-stream", "profile.pb.gz",
				      pprof_write_for_collectors, BY_GROUPS, false },
	[PROFILES_OTLP] = { "application/x-protobuf", NULL, otlp_write_for_collectors, STACKS,
			    false },
	[PROFILES_FOLDED] = { "text/plain; charset=utf-8", NULL, write_folded, STACKS, true },
};

int profiles_answer(struct answer **out, struct names *n, struct difference *d,
		    const struct host_identity *host, enum profiles_format format)
{
	__cleanup(freep) char *bytes = NULL;
	struct profile *p = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&bytes, &size);
	int err = f ? 0 : -ENOMEM;

	n->symbols.without_lines = !formats[format].has_inlined;
	err = err ?: profile_of(&p, n, d, formats[format].samples);
	n->symbols.without_lines = false;
	if (!err) {
		p->host = *host;
		err = formats[format].write(f, p, d->began_ns);
	}
	if (f && fclose(f))
		err = err ?: -ENOMEM;
	profile_give_back(p);
	if (err < 0)
		return err;
	*out = answer_new(200, formats[format].type, steal(bytes), size);
	if (!*out)
		return -ENOMEM;
	(*out)->name = formats[format].name;
	return 0;
}

int profiles_answer_page(struct answer **out, struct names *n, struct difference *d,
			 const struct host_identity *host, const struct graph_query *q)
{
	struct profile *p = NULL;
	int err = profile_of(&p, n, d, WITH_PLACES) ?: graph_answer_of(out, p, host, q);

	profile_give_back(p);
	return err;
}
