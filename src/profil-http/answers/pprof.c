/* pprof.c - a difference in pprof's format: profile.proto, gzipped */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "locations.h"
#include "pprof.h"
#include "profile/stack_ends.h"
#include "formats/profile_content.h"
#include "base/gzip.h"
#include "core/arch.h"
#include "base/grow.h"
#include "profil-http/machine/difference.h"

/*
 * A reader looks up an address in the file's symbols by its distance from the start of the mapping
 * and by the segment at the mapping's offset. If profil-http could not read a file, addresses are
 * its offsets; a reader with a file of that build id finds the segment all the same.
 */
struct mapping {
	const char *file;
	const char *build_id;
	__u64 start;
	__u64 limit;
	__u64 offset;
	__u64 bias; /* address = bias + offset in the object */
	bool has_functions;
	const char *frame_type; /* of OpenTelemetry; NULL: unknown */
};

/* The last mapping is for samples without an image. Ids begin with 1. */
struct mappings {
	const struct names *names;
	struct mapping *mapping;
	size_t n;
	size_t *first; /* of each object, in @id */
	__u32 *id; /* by object, and within that by segment, the last for offsets in no segment; 0:
		      none */
};

struct stacks {
	const struct call_tree *tree; /* with the objects of the names */
	struct places places;	      /* of all frames; their counts mean nothing */
};

#define PAGE 4096u

/*
 * Places of the kernel are offsets from _text. Use its link address, so as not to disclose KASLR.
 */
#define KERNEL_TEXT ARCH_KERNEL_TEXT

static __u32 *id_of(const struct mappings *m, __u32 object, __u64 offset)
{
	const struct segments *s = names_segments(m->names, object);
	const struct segment *g = segments_of_offset(s, offset);

	return &m->id[m->first[object] + (g ? (size_t)(g - s->segment) : s->n)];
}

static int add(struct mappings *m, const struct mapping *like)
{
	struct mapping *more = grow(m->mapping, m->n, sizeof(*more));

	if (!more)
		return -ENOMEM;
	m->mapping = more;
	more[m->n++] = *like;
	return 0;
}

static int add_for(struct mappings *m, const struct place *place)
{
	const struct object *o = &m->names->profile->objects[place->object];
	const struct segment *g =
		segments_of_offset(names_segments(m->names, place->object), place->offset);
	struct mapping new = { .file = o->path,
			       .build_id = o->build_id,
			       .has_functions = true,
			       .frame_type = content_frame_type(o) };

	if (o->kind == OBJECT_KERNEL)
		new.bias = KERNEL_TEXT;
	if (g) {
		new.start = g->vaddr;
		new.limit = g->vaddr + g->bytes;
		new.offset = g->offset;
		new.bias = g->vaddr - g->offset;
	} else if (place->width) {
		new.offset = place->offset / PAGE *PAGE;
		new.start = new.limit = new.bias + new.offset;
	}
	return add(m, &new);
}

/* Extends a mapping to a place. Places are sorted, so the first one has set its start. */
static void take(struct mapping *m, const struct spot *spot, bool in_segment)
{
	const struct place *p = &spot->place;
	__u64 end = m->bias + (p->offset + p->width + PAGE - 1) / PAGE * PAGE;

	if (!p->width)
		return;
	m->has_functions &= spot->function && spot->function->name;
	if (in_segment)
		return;
	if (!m->limit) { /* only has places anywhere in the object so far */
		m->offset = p->offset / PAGE * PAGE;
		m->start = m->bias + m->offset;
	}
	if (end > m->limit)
		m->limit = end;
}

/* Numbers the segments of all objects, with one more each for offsets in no segment. */
static int number(struct mappings *m)
{
	const struct profile *p = m->names->profile;
	size_t n = 0;

	m->first = calloc(p->nobjects + 1, sizeof(*m->first));
	for (size_t i = 0; m->first && i < p->nobjects; i++) {
		m->first[i] = n;
		n += p->objects[i].segments.n + 1;
	}
	m->id = calloc(n + 1, sizeof(*m->id));
	return m->first && m->id ? 0 : -ENOMEM;
}

/* The mapping of @place, which is added if it is new, and its id. NULL: out of memory. */
static struct mapping *mapping_of(struct mappings *m, const struct place *place)
{
	__u32 *id = id_of(m, place->object, place->offset);

	if (!*id) {
		if (add_for(m, place) < 0)
			return NULL;
		*id = (__u32)m->n;
	}
	return m->mapping ? &m->mapping[*id - 1] : NULL;
}

/* @whole: each object has one mapping, for all of its places. Returns 0 or -ENOMEM. */
static int mappings_init(struct mappings *m, const struct names *n, const struct locations *at,
			 bool whole)
{
	const struct mapping none = { .file = "[none]", .build_id = "", .has_functions = true };

	*m = (struct mappings){ .names = n };
	if (number(m) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < at->spots.n; i++) {
		struct spot spot = at->spots.spot[i];
		struct mapping *mapping;

		if (whole)
			spot.place.offset = spot.place.width = 0;
		mapping = mapping_of(m, &spot.place);
		if (!mapping)
			return -ENOMEM;
		take(mapping, &spot,
		     segments_of_offset(names_segments(n, spot.place.object), spot.place.offset));
	}
	return add(m, &none);
}

/* The id of the mapping of @offset in an object that has places. */
static __u64 mappings_id(const struct mappings *m, __u32 object, __u64 offset)
{
	return *id_of(m, object, offset);
}

static __u64 mappings_address(const struct mappings *m, __u64 id, __u64 offset)
{
	return m->mapping[id - 1].bias + offset;
}

static void mappings_fini(struct mappings *m)
{
	free(m->mapping);
	free(m->id);
	free(m->first);
	*m = (struct mappings){ 0 };
}

/*
 * The place of node @at of the tree, as innermost frame or as @caller: the latter is in the middle
 * of the call instruction, as pprof wants it.
 */
static struct place stacks_place(const struct stacks *s, __u32 at, bool caller)
{
	const struct call_node *node = &s->tree->node[at];
	struct place place = { .object = node->object, .offset = node->offset, .count = 1 };

	/* Offset 0 is no code: anywhere in the object, as in a kernel whose addresses are hidden.
	 */
	if (!place.offset)
		return place;
	place.offset -= caller;
	place.width = 1;
	return place;
}

static int add_place(struct stacks *s, __u32 at, bool caller)
{
	const struct place place = stacks_place(s, at, caller);

	return places_add(&s->places, &place);
}

/* Returns 0 or -ENOMEM; places_fini() in any case. */
static int stacks_init(struct stacks *s, const struct call_tree *tree)
{
	int err = 0;

	*s = (struct stacks){ .tree = tree };
	for (__u32 i = CALL_ROOTS; i < tree->n && !err; i++) {
		__u32 parent = tree->node[i].parent;

		if (tree->node[i].count)
			err = add_place(s, i, false);
		if (!err && parent >= CALL_ROOTS)
			err = add_place(s, parent, true);
	}
	return err;
}

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
		at = w->stacks.tree->node[at].parent;
	}
	end = at < CALL_ROOTS ? cut(w, at) : 0;
	if (end)
		path[n++] = end;
	return n;
}

/* Takes what @left has at most. */
static __u64 part_of(__u64 *left, __u64 count)
{
	__u64 n = count < *left ? count : *left;

	*left -= n;
	return n;
}

/* All samples: those without a stack as outcomes, as far as these have none. */
static int stacks(struct pprof *w)
{
	const struct call_tree *t = w->stacks.tree;
	__u64 path[FRAMES_MAX], none = w->mappings.n, left = w->d->outcomes.total;
	int err = locations(w);

	for (__u32 i = 0; i < t->n && !err; i++) {
		const struct call_node *node = &t->node[i];
		struct owner of = w->d->owner[node->object];

		if (i < CALL_ROOTS || !node->count)
			continue;
		if (node->group)
			of = owner_of_group(&w->profile->groups[node->group]);
		sample_at(w, path, path_of(w, i, path), part_of(&left, node->count), &of);
	}
	nowhere(w, "[unmatched]", none, part_of(&left, w->d->outcomes.unmatched));
	nowhere(w, "[lost]", none, part_of(&left, w->d->outcomes.lost));
	nowhere(w, "[no stack]", none, left);
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
		struct owner owner = owner_of_group(g);
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
	err = stacks_init(&w->stacks, &w->d->stacks);
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
	err = err ?: mappings_init(&w->mappings, n, &w->at, w->samples == PPROF_GROUPS);
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

/*
 * OTLP is compressed by none: a reader that takes it sends it on. Closing the stream can move the
 * bytes, so they are taken afterwards.
 */
static int pack_otlp(struct answer **out, struct message *m)
{
	if (fclose(steal(m->f)))
		return -ENOMEM;
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
	int err = message_init(&whole)
		      ?: write_all(&w, n)
		      ?: (otlp ? content_write_otlp : content_write_pprof)(&w.proto, &whole)
		      ?: (otlp ? pack_otlp(out, &whole) : pack(out, &whole));

	message_fini(&whole);
	content_fini(&w.proto);
	locations_fini(&w.at);
	places_fini(&w.stacks.places);
	mappings_fini(&w.mappings);
	free(w.whole);
	free(w.id);
	return err;
}
