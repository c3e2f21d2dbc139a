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
	if (pprof_period(p))
		proto_sample_type(&w->proto, type, unit);
	proto_period(&w->proto, type, unit, pprof_period(p));
	proto_time(&w->proto, (__u64)p->started * 1000000000u, p->duration_ns);
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

		if (!e->start || (e->object == w->main) != main)
			continue;
		w->mapping[i] = proto_mapping(&w->proto,
					      &(struct proto_mapping){ e->start, e->end, e->offset,
								       o->path, o->build_id, true,
								       content_frame_type(o) });
	}
}

static int mappings(struct pprof *w)
{
	w->mapping = calloc(w->extents.n + 1, sizeof(*w->mapping));
	if (!w->mapping)
		return -ENOMEM;
	some_mappings(w, true);
	some_mappings(w, false);
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

	return w->profile->nfunctions + 3 + (__u64)(found - w->inlined);
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

/* Ids are function indices + 1, followed by two more and by inlined functions. */
static int functions(struct pprof *w)
{
	const struct profile *p = w->profile;
	__cleanup(freep) const char **file = calloc(p->nfunctions + 1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	for (size_t i = w->spots.n; i-- > 0;) {
		const struct spot *spot = &w->spots.spot[i];

		if (spot->function && spot->file && !spot->inlined)
			file[spot->function - p->functions] = spot->file;
	}
	for (size_t i = 0; i < p->nfunctions; i++) {
		char name[4096];

		profile_function_name(p, &p->functions[i], name, sizeof(name));
		proto_function(&w->proto, name, file[i] ? file[i] : "");
	}
	proto_function(&w->proto, "[unmatched]", "");
	proto_function(&w->proto, "[lost]", "");
	return inlined_functions(w);
}

/* Labels for the mode and the group. */
static void labels(struct pprof *w, const struct place *place)
{
	if (w->profile->objects[place->object].kind == OBJECT_KERNEL)
		proto_label(&w->proto, "mode", "kernel");
	if (w->owner && !place->group)
		content_owner(&w->proto, "command", &w->owner[place->object]);
	else
		pprof_group_labels(w, place->group);
}

/* Writes @samples at the last location; @place NULL: in no place. */
static void sample(struct pprof *w, const struct place *place, __u64 samples)
{
	if (place)
		labels(w, place);
	proto_sample(&w->proto, &(__u64){ w->proto.nlocations }, 1, samples);
}

/* Writes @samples at a location in no mapping. */
static void nowhere(struct pprof *w, __u64 function_id, __u64 samples)
{
	if (!samples)
		return;
	proto_line(&w->proto, function_id, 0);
	proto_location(&w->proto, 0, 0);
	sample(w, NULL, samples);
}

/* Inlined functions precede the function that contains them. */
static void location(struct pprof *w, const struct spot *spot)
{
	const struct profile *p = w->profile;
	__u32 object = spot->place.object;
	__u64 offset = spot->place.offset, address = extents_address(&w->extents, object, offset);
	int line = spot->file ? spot->line : 0;

	if (spot->inlined)
		proto_line(&w->proto, inlined_id(w, spot->inlined), line);
	if (spot->function)
		proto_line(&w->proto, (__u64)(spot->function - p->functions) + 1,
			   spot->inlined ? 0 : line);
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
	nowhere(w, p->nfunctions + 1, p->unmatched);
	nowhere(w, p->nfunctions + 2, p->lost);
}

static int collect(struct pprof *w)
{
	const struct profile *p = w->profile;
	bool stacks = has_stacks(p);
	int err = (stacks ? 0 : spots_init(&w->spots, w->profile, w->lines))
		      ?: extents_init(&w->extents, w->profile)
		      ?: profile_main_object(&w->main, w->profile);

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

/* Encodes the profile of @lines into @whole by @write. */
static int encode(struct message *whole, struct lines_store *lines,
		  int (*write)(struct profile_content *c, struct message *out))
{
	struct pprof w = { .profile = lines->profile, .lines = lines };
	int err = message_init(whole) ?: collect(&w) ?: write(&w.proto, whole);

	spots_fini(&w.spots);
	content_fini(&w.proto);
	extents_fini(&w.extents);
	free(w.mapping);
	free(w.owner);
	free(w.inlined);
	return err;
}

int pprof_write(FILE *out, const struct profile *p)
{
	__cleanup(lines_store_fini) struct lines_store lines = { .profile = p };
	struct message whole = { 0 };
	int err = encode(&whole, &lines, content_write_pprof)
			  ?: gzip_write(out, whole.bytes, whole.n);

	message_fini(&whole);
	return err;
}

/* Uncompressed: a request is compressed by HTTP. */
int otlp_write_lines(FILE *out, struct lines_store *lines)
{
	struct message whole = { 0 };
	int err = encode(&whole, lines, content_write_otlp);

	if (!err && fwrite(whole.bytes, 1, whole.n, out) != whole.n)
		err = -EIO;
	message_fini(&whole);
	return err;
}

int otlp_write(FILE *out, const struct profile *p)
{
	__cleanup(lines_store_fini) struct lines_store lines = { .profile = p };

	return otlp_write_lines(out, &lines);
}
