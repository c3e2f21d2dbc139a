/* pprof.c - pprof's format (profile.proto, gzipped) and OpenTelemetry's */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "pprof_writer.h"
#include "profile/stack_ends.h"
#include "format.h"
#include "base/gzip.h"

static void head(struct pprof *w)
{
	const struct profile *p = w->profile;
	const char *type = p->event ? p->event : "cpu",
		   *unit = p->tick_ns ? "nanoseconds" : "count";
	char ends[2048], program[4096];

	proto_sample_type(&w->proto, "samples", "count");
	if (pprof_period(p)) {
		proto_sample_type(&w->proto, type, unit);
		proto_default_type(&w->proto, type);
	}
	proto_period(&w->proto, type, unit, pprof_period(p));
	proto_time(&w->proto, w->began_ns ?: (__u64)p->started * 1000000000u, p->duration_ns);
	proto_comment(&w->proto, p->command);
	if (has_stacks(p))
		proto_comment(&w->proto, stack_ends_summary(ends, sizeof(ends), p));
	w->proto.least = p->least;
	proto_host(&w->proto, &p->host,
		   p->pid ? profile_base_name(profile_program(program, sizeof(program), p))
			  : "machine");
}

/* Adds the mappings of the main object, or all others; an object has one for each segment. */
static void some_mappings(struct pprof *w, bool main)
{
	const struct profile *p = w->profile;

	for (size_t i = 0; i < w->extents.n; i++) {
		const struct extent *e = &w->extents.extent[i];
		const struct object *o = &p->objects[e->object];

		if (!e->used || (e->object == w->main) != main)
			continue;
		w->mapping[i] = proto_mapping(
			&w->proto, &(struct proto_mapping){ e->start, e->end, e->offset, o->path,
							    o->build_id, content_frame_type(o) });
	}
}

static int mappings(struct pprof *w)
{
	w->mapping = calloc(w->extents.n + 1, sizeof(*w->mapping));
	if (!w->mapping)
		return -ENOMEM;
	some_mappings(w, true);
	some_mappings(w, false);
	if (w->for_collectors)
		w->nowhere = proto_mapping(
			&w->proto, &(struct proto_mapping){ .file = "[none]", .build_id = "" });
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct inlined *x = a, *y = b;

	return x->name < y->name ? -1 : x->name > y->name;
}

/* The id of an inlined function. Names are unique pointers within an object. */
static __u64 inlined_id(const struct pprof *w, const char *name)
{
	const struct inlined key = { name, NULL };
	const struct inlined *found =
		bsearch(&key, w->inlined, w->ninlined, sizeof(key), by_address);

	return w->function[w->profile->nfunctions + 1] + 1u + (__u64)(found - w->inlined);
}

static int inlined_functions(struct pprof *w)
{
	size_t n = 0;

	w->inlined = calloc(w->spots.n + 1, sizeof(*w->inlined));
	if (!w->inlined)
		return -ENOMEM;
	for (size_t i = 0; i < w->spots.n; i++) {
		const struct spot *spot = &w->spots.spot[i];

		if (spot->inlined)
			w->inlined[n++] = (struct inlined){ spot->inlined, spot->file };
	}
	qsort(w->inlined, n, sizeof(*w->inlined), by_address);
	for (size_t i = 0; i < n; i++) {
		const struct inlined *now = &w->inlined[i];

		if (!i || now->name != w->inlined[w->ninlined - 1].name)
			w->inlined[w->ninlined++] = *now;
	}
	for (size_t i = 0; i < w->ninlined; i++) {
		const struct inlined *f = &w->inlined[i];

		proto_function(&w->proto, f->name, f->file ? f->file : "");
	}
	return 0;
}

/* Inlined functions come last. */
static int functions(struct pprof *w)
{
	const struct profile *p = w->profile;
	__cleanup(freep) const char **file = calloc(p->nfunctions + 1, sizeof(*file));

	w->function = calloc(p->nfunctions + 2, sizeof(*w->function));
	if (!file || !w->function)
		return -ENOMEM;
	for (size_t i = w->spots.n; i-- > 0;) {
		const struct spot *spot = &w->spots.spot[i];

		if (spot->function && spot->file && !spot->inlined)
			file[spot->function - p->functions] = spot->file;
	}
	for (size_t i = 0; i < p->nfunctions; i++) {
		const struct function *f = &p->functions[i];
		char name[4096];

		if (w->for_collectors && !f->name)
			continue;
		profile_function_name(p, f, name, sizeof(name));
		w->function[i] = proto_function(&w->proto, name, file[i] ? file[i] : "");
	}
	w->function[p->nfunctions] = proto_function(&w->proto, "[unmatched]", "");
	w->function[p->nfunctions + 1] = proto_function(&w->proto, "[lost]", "");
	return inlined_functions(w);
}

/* Writes @samples at the last location; @place NULL: in no place. */
static void sample(struct pprof *w, const struct place *place, __u64 samples)
{
	if (place)
		pprof_labels(w, place->object, place->group);
	proto_sample(&w->proto, &(__u64){ w->proto.nlocations }, 1, samples);
}

/* Writes @samples at a location in no file. */
static void nowhere(struct pprof *w, __u64 function_id, __u64 samples)
{
	if (!samples)
		return;
	proto_line(&w->proto, function_id, 0);
	proto_location(&w->proto, w->nowhere, 0);
	sample(w, NULL, samples);
}

/* Inlined functions precede the function that contains them. */
static void location(struct pprof *w, const struct spot *spot)
{
	const struct profile *p = w->profile;
	__u32 object = spot->place.object;
	__u64 offset = spot->place.offset;
	__u64 address = spot->place.width ? extents_address(&w->extents, object, offset) : 0;
	__u32 function = spot->function ? w->function[spot->function - p->functions] : 0;
	int line = spot->file ? spot->line : 0;

	if (spot->inlined)
		proto_line(&w->proto, inlined_id(w, spot->inlined), line);
	if (function)
		proto_line(&w->proto, function, spot->inlined ? 0 : line);
	proto_location(&w->proto, pprof_mapping(w, object, offset), address);
}

/* Groups at the same place share its location. */
static bool is_same(const struct place *a, const struct place *b)
{
	return a->object == b->object && a->offset == b->offset && a->width == b->width;
}

static void samples(struct pprof *w)
{
	const struct profile *p = w->profile;

	for (size_t i = 0; i < w->spots.n; i++) {
		const struct spot *spot = &w->spots.spot[i];

		if (!i || !is_same(&spot->place, &spot[-1].place))
			location(w, spot);
		sample(w, &spot->place, spot->place.count);
	}
	nowhere(w, w->function[p->nfunctions], p->unmatched);
	nowhere(w, w->function[p->nfunctions + 1], p->lost);
}

static int collect(struct pprof *w)
{
	const struct profile *p = w->profile;
	bool stacks = has_stacks(p);
	int err = (stacks ? 0 : spots_init(&w->spots, p, w->lines))
		      ?: (w->for_collectors ? extents_init_linked : extents_init)(&w->extents, p)
		      ?: profile_main_object(&w->main, p);

	if (!err && p->sums.n && !p->group_full) {
		w->owner = owners_find(p, &p->sums);
		err = w->owner ? 0 : -ENOMEM;
	}
	if (err < 0)
		return err;
	head(w);
	err = mappings(w);
	if (err < 0)
		return err;
	err = stacks ? pprof_stacks(w) : functions(w);
	if (err < 0)
		return err;
	if (!stacks)
		samples(w);
	return 0;
}

typedef int content_writer(struct profile_content *c, struct message *out);

/* Encodes the profile of @w into @whole, and ends @w. */
static int encode(struct message *whole, struct pprof *w, content_writer *write)
{
	int err = message_init(whole) ?: collect(w) ?: write(&w->proto, whole);

	spots_fini(&w->spots);
	content_fini(&w->proto);
	extents_fini(&w->extents);
	free(w->mapping);
	free(w->function);
	free(w->owner);
	free(w->inlined);
	return err;
}

static int write_pprof(FILE *out, struct pprof *w)
{
	struct message whole = { 0 };
	int err = encode(&whole, w, content_write_pprof) ?: gzip_write(out, whole.bytes, whole.n);

	message_fini(&whole);
	return err;
}

/* Uncompressed: a request is compressed by HTTP. */
static int write_otlp(FILE *out, struct pprof *w)
{
	struct message whole = { 0 };
	int err = encode(&whole, w, content_write_otlp);

	if (!err && fwrite(whole.bytes, 1, whole.n, out) != whole.n)
		err = -EIO;
	message_fini(&whole);
	return err;
}

int pprof_write(FILE *out, const struct profile *p)
{
	__cleanup(lines_store_fini) struct lines_store lines = { .profile = p };
	struct pprof w = { .profile = p, .lines = &lines };

	return write_pprof(out, &w);
}

int otlp_write_lines(FILE *out, struct lines_store *lines)
{
	struct pprof w = { .profile = lines->profile, .lines = lines };

	return write_otlp(out, &w);
}

int otlp_write(FILE *out, const struct profile *p)
{
	__cleanup(lines_store_fini) struct lines_store lines = { .profile = p };

	return otlp_write_lines(out, &lines);
}

int pprof_write_for_collectors(FILE *out, const struct profile *p, __u64 began_ns)
{
	struct pprof w = { .profile = p, .for_collectors = true, .began_ns = began_ns };

	return write_pprof(out, &w);
}

int otlp_write_for_collectors(FILE *out, const struct profile *p, __u64 began_ns)
{
	struct pprof w = { .profile = p, .for_collectors = true, .began_ns = began_ns };

	return write_otlp(out, &w);
}
