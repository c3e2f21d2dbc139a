/* pprof.c - a difference in pprof's format: profile.proto, gzipped */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "locations.h"
#include "mappings.h"
#include "pprof.h"
#include "profile/stack_ends.h"
#include "formats/profile_content.h"
#include "base/gzip.h"
#include "stacks.h"

#define FRAMES_MAX (PROFIL_FRAMES_MAX + PROFIL_KERNEL_FRAMES_MAX + 2)

struct pprof {
	const struct difference *d;
	enum pprof_samples samples;
	const struct profile *profile; /* of the names */
	const struct host_identity *host;
	__u64 period_ns;
	struct locations at;
	struct stacks stacks;
	struct mappings mappings;
	__u64 *whole;	       /* of each object: the location for all of it; 0: none yet */
	__u64 *id;	       /* of each of @at: its location */
	__u64 cut[CALL_ROOTS]; /* the outermost frame of a truncated stack; 0: none yet */
	struct profile_content proto;
};

static void head(struct pprof *w)
{
	proto_sample_type(&w->proto, "samples", "count");
	proto_sample_type(&w->proto, "cpu", "nanoseconds");
	proto_period(&w->proto, "cpu", "nanoseconds", w->period_ns);
	proto_time(&w->proto, w->d->began_ns, w->d->duration_ns);
	proto_default_type(&w->proto, "cpu");
	proto_host(&w->proto, w->host, "machine");
}

static void write_mappings(struct pprof *w)
{
	for (size_t i = 0; i < w->mappings.n; i++) {
		const struct mapping *m = &w->mappings.mapping[i];

		proto_mapping(&w->proto, &(struct proto_mapping){
						 m->start, m->limit, m->offset, m->file,
						 m->build_id, m->has_functions, m->frame_type });
	}
}

/* Returns its id. */
static __u64 function(struct pprof *w, const char *name)
{
	return proto_function(&w->proto, name, "");
}

/* Returns the id of a new location; @function_id 0: its function is not known. */
static __u64 location(struct pprof *w, __u64 mapping, __u64 address, __u64 function_id)
{
	if (function_id)
		proto_line(&w->proto, function_id, 0);
	return proto_location(&w->proto, mapping, address);
}

static void sample_at(struct pprof *w, const __u64 *location_id, size_t n, __u64 count,
		      const struct owner *owner)
{
	if (!count)
		return;
	if (owner)
		content_owner(&w->proto, "comm", owner);
	proto_sample(&w->proto, location_id, n, count);
}

static void sample(struct pprof *w, __u64 location_id, __u64 count, const struct owner *owner)
{
	sample_at(w, &location_id, 1, count, owner);
}

/* The location for all of an object, with address 0, in no segment. */
static __u64 whole(struct pprof *w, __u32 object)
{
	const char *base = profile_base_name(w->profile->objects[object].path);
	char name[512];

	if (w->whole[object])
		return w->whole[object];
	snprintf(name, sizeof(name), *base == '[' ? "%s" : "[%s]", base);
	w->whole[object] = location(w, mappings_id(&w->mappings, object, 0), 0, function(w, name));
	return w->whole[object];
}

static void nowhere(struct pprof *w, const char *name, __u64 mapping, __u64 count)
{
	if (count)
		sample(w, location(w, mapping, 0, function(w, name)), count, NULL);
}

/*
 * Functions without a symbol are left out, unlike in profilctl's files: collectors find the names
 * of locations without a function by build id.
 */
static int locations(struct pprof *w)
{
	const struct function *f = w->at.profile->functions;
	__cleanup(freep) __u64 *named = calloc(w->at.profile->nfunctions + 1, sizeof(*named));

	w->id = calloc(w->at.spots.n + 1, sizeof(*w->id));
	if (!named || !w->id)
		return -ENOMEM;
	for (size_t i = 0; i < w->at.profile->nfunctions; i++)
		named[i] = f[i].name && f[i].size ? function(w, f[i].name) : 0;
	for (size_t i = 0; i < w->at.spots.n; i++) {
		const struct spot *spot = &w->at.spots.spot[i];
		const struct place *p = &spot->place;
		__u64 mapping = mappings_id(&w->mappings, p->object, p->offset);
		__u64 address = mappings_address(&w->mappings, mapping, p->offset);

		w->id[i] = p->width ? location(w, mapping, address,
					       spot->function ? named[spot->function - f] : 0)
				    : whole(w, p->object);
	}
	return 0;
}

static int places(struct pprof *w)
{
	int err = locations(w);

	for (size_t i = 0; i < w->at.spots.n && !err; i++) {
		const struct place *p = &w->at.spots.spot[i].place;

		sample(w, w->id[i], p->count, &w->d->owner[p->object]);
	}
	return err;
}

/* The location of the outermost frame of a stack that ends in @root; 0: it is complete. */
static __u64 cut(struct pprof *w, __u32 root)
{
	const char *name = stack_root_frame(root);

	if (name && !w->cut[root])
		w->cut[root] = location(w, w->mappings.n, 0, function(w, name));
	return w->cut[root];
}

/* Writes the locations of the stack of node @at, innermost first; returns their number. */
static size_t path_of(struct pprof *w, __u32 at, __u64 *path)
{
	size_t n = 0;
	__u64 end;

	for (bool caller = false; at >= CALL_ROOTS && n < FRAMES_MAX - 1; caller = true) {
		const struct place place = stacks_place(&w->stacks, at, caller);
		__u64 id = w->id[locations_find(&w->at, &place)];

		/* Frames that are anywhere in the same object are one. */
		if (!n || place.width || path[n - 1] != id)
			path[n++] = id;
		at = w->stacks.tree.node[at].parent;
	}
	end = at < CALL_ROOTS ? cut(w, at) : 0;
	if (end)
		path[n++] = end;
	return n;
}

/* All samples: each has a stack, or is lost to the stacks. */
static int stacks(struct pprof *w)
{
	const struct call_tree *t = &w->stacks.tree;
	__u64 path[FRAMES_MAX], none = w->d->stack_lost;
	int err = locations(w);

	for (__u32 i = 0; i < t->n && !err; i++) {
		const struct call_node *node = &t->node[i];

		if (i < CALL_ROOTS)
			none += node->count;
		else if (node->count)
			sample_at(w, path, path_of(w, i, path), node->count,
				  &w->d->owner[node->object]);
	}
	nowhere(w, "[no stack]", w->mappings.n, none);
	return err;
}

/* Writes the groups' sums; samples that they lack have no group. */
static int groups(struct pprof *w)
{
	const struct profile *p = w->profile;
	__cleanup(freep) struct place *sums = places_sorted(&w->d->sums);
	__cleanup(freep) __u64 *rest = calloc(p->nobjects + 1, sizeof(*rest));

	if (!sums || !rest)
		return -ENOMEM;
	places_each(place, &w->d->places)
		rest[place->object] += place->count;
	for (size_t i = 0; i < w->d->sums.n; i++) {
		const struct group *g = &p->groups[sums[i].group];
		struct owner owner = { g->command, g->unit, g->cgroup, true };
		__u32 object = sums[i].object;
		/*
		 * The kernel counts a sample at its place first, then in the sum, so a snapshot in
		 * between lacks the latter.
		 */
		__u64 count = sums[i].count < rest[object] ? sums[i].count : rest[object];

		rest[object] -= count;
		if (count)
			sample(w, whole(w, object), count, sums[i].group ? &owner : NULL);
	}
	for (__u32 i = 0; i < p->nobjects; i++) {
		if (rest[i])
			sample(w, whole(w, i), rest[i], NULL);
	}
	return 0;
}

static int find_places(struct pprof *w, struct names *n)
{
	int err;

	if (w->samples != PPROF_STACKS)
		return locations_init(&w->at, n, &w->d->places);
	err = stacks_init(&w->stacks, n, w->d);
	return err ? err : locations_init(&w->at, n, &w->stacks.places);
}

static int write_samples(struct pprof *w)
{
	__u64 none = w->mappings.n;
	int err;

	if (w->samples == PPROF_STACKS)
		return stacks(w);
	err = w->samples == PPROF_GROUPS ? groups(w) : places(w);
	nowhere(w, "[unmatched]", none, w->d->outcomes.unmatched);
	nowhere(w, "[lost]", none, w->d->outcomes.lost);
	return err;
}

static int write_all(struct pprof *w, struct names *n)
{
	int err = find_places(w, n);

	w->whole = calloc(w->profile->nobjects + 1, sizeof(*w->whole));
	if (!err)
		err = mappings_init(&w->mappings, n, &w->at, w->samples == PPROF_GROUPS);
	if (!err && !w->whole)
		err = -ENOMEM;
	if (err < 0)
		return err;
	head(w);
	write_mappings(w);
	return write_samples(w);
}

/* Makes the answer from @m, gzipped. */
static int pack(struct answer **out, const struct message *m)
{
	char *bytes = NULL;
	size_t n;
	FILE *f = open_memstream(&bytes, &n);
	int err = f ? gzip_write(f, m->bytes, m->n) : -ENOMEM;

	if (f && fclose(f) && !err)
		err = -ENOMEM;
	if (err < 0) {
		free(bytes);
		return err;
	}
	*out = answer_new(200, "application/octet-stream", bytes, n);
	if (!*out)
		return -ENOMEM;
	(*out)->name = "profile.pb.gz";
	return 0;
}

/* OTLP is compressed by none: a reader that takes it sends it on. */
static int pack_otlp(struct answer **out, struct message *m)
{
	*out = answer_new(200, "application/x-protobuf", steal(m->bytes), m->n);
	return *out ? 0 : -ENOMEM;
}

int pprof_answer(struct answer **out, struct names *n, const struct difference *d,
		 const struct host_identity *host, enum pprof_samples samples, bool otlp)
{
	struct pprof w = { .d = d,
			   .samples = samples,
			   .profile = n->profile,
			   .host = host,
			   .period_ns = d->to->head.period_ns };
	struct message whole = { 0 };
	int err = message_init(&whole);

	if (!err)
		err = write_all(&w, n);
	if (!err)
		err = otlp ? content_write_otlp(&w.proto, &whole)
			   : content_write_pprof(&w.proto, &whole);
	if (!err)
		err = otlp ? pack_otlp(out, &whole) : pack(out, &whole);
	message_fini(&whole);
	content_fini(&w.proto);
	locations_fini(&w.at);
	stacks_fini(&w.stacks);
	mappings_fini(&w.mappings);
	free(w.whole);
	free(w.id);
	return err;
}
