/* pprof.c - a profile as pprof reads it: profile.proto, gzipped */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/scope.h"

#include "extents.h"
#include "format.h"
#include "protobuf.h"
#include "spots.h"

/* The fields of profile.proto, by message. */
enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME_NS = 9,
	PROFILE_DURATION_NS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
};
enum value_type_field { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum sample_field { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2 };
enum mapping_field {
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_OFFSET = 4,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
};
enum location_field {
	LOCATION_ID = 1,
	LOCATION_MAPPING = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,
};
enum line_field { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum function_field { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM = 3, FUNCTION_FILE = 4 };

/* A message that is being written: it goes into another one as a whole. */
struct message {
	FILE *f;
	char *bytes;
	size_t n;
};

struct pprof {
	const struct profile *profile;
	struct spots spots;
	struct extent *extents;
	const char **inlined; /* the functions that were inlined: their ids follow the others' */
	size_t ninlined;
	__u32 main; /* the first mapping, by whose name pprof calls it all */
	__u64 nstrings;
	__u64 nlocations;
	struct message whole;
	struct message part;
	struct message line;
};

static int message_init(struct message *m)
{
	m->f = open_memstream(&m->bytes, &m->n);
	return m->f ? 0 : -ENOMEM;
}

static void message_fini(struct message *m)
{
	if (m->f)
		fclose(m->f);
	free(m->bytes);
}

/* Puts what is in @m into field @number of @into, and empties it. */
static void message_into(struct message *m, struct message *into, unsigned int number)
{
	fflush(m->f);
	protobuf_bytes(into->f, number, m->bytes, m->n);
	rewind(m->f);
}

/* Returns the index of a string; 0 is the empty one. */
static __u64 string(struct pprof *w, const char *s)
{
	if (w->nstrings && !*s)
		return 0;
	protobuf_bytes(w->whole.f, PROFILE_STRING, s, strlen(s));
	return w->nstrings++;
}

static void value_type(struct pprof *w, unsigned int number, const char *type, const char *unit)
{
	protobuf_number(w->part.f, VALUE_TYPE, string(w, type));
	protobuf_number(w->part.f, VALUE_UNIT, string(w, unit));
	message_into(&w->part, &w->whole, number);
}

static void head(struct pprof *w)
{
	const struct profile *p = w->profile;

	string(w, "");
	value_type(w, PROFILE_SAMPLE_TYPE, "samples", "count");
	value_type(w, PROFILE_SAMPLE_TYPE, "cpu", "nanoseconds");
	value_type(w, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
	protobuf_number(w->whole.f, PROFILE_PERIOD, p->tick_ns);
	protobuf_number(w->whole.f, PROFILE_TIME_NS, (__u64)p->started * 1000000000u);
	protobuf_number(w->whole.f, PROFILE_DURATION_NS, p->duration_ns);
	protobuf_number(w->whole.f, PROFILE_COMMENT, string(w, p->command));
}

/* The ids are the places in the profile's own order, but for the first: it changes places. */
static __u64 mapping_id(const struct pprof *w, __u32 object)
{
	return 1 + (object == w->main ? 0 : object == 0 ? w->main : object);
}

static void mappings(struct pprof *w)
{
	const struct profile *p = w->profile;

	for (__u32 n = 0; n < p->nobjects; n++) {
		__u32 i = (__u32)mapping_id(w, n) - 1; /* it is its own inverse */
		const struct extent *e = &w->extents[i];
		FILE *f = w->part.f;

		protobuf_number(f, MAPPING_ID, n + 1);
		protobuf_number(f, MAPPING_START, e->start);
		protobuf_number(f, MAPPING_LIMIT, e->end);
		protobuf_number(f, MAPPING_OFFSET, e->offset);
		protobuf_number(f, MAPPING_FILE, string(w, p->objects[i].path));
		protobuf_number(f, MAPPING_BUILD_ID, string(w, p->objects[i].build_id));
		protobuf_number(f, MAPPING_HAS_FUNCTIONS, 1);
		message_into(&w->part, &w->whole, PROFILE_MAPPING);
	}
}

static void function(struct pprof *w, __u64 id, const char *name, const char *file)
{
	__u64 index = string(w, name);

	protobuf_number(w->part.f, FUNCTION_ID, id);
	protobuf_number(w->part.f, FUNCTION_NAME, index);
	protobuf_number(w->part.f, FUNCTION_SYSTEM, index);
	protobuf_number(w->part.f, FUNCTION_FILE, string(w, file));
	message_into(&w->part, &w->whole, PROFILE_FUNCTION);
}

/* Which of the inlined functions @name is; each has one name in memory, in each object. */
static size_t inlined_index(const struct pprof *w, const char *name)
{
	size_t i = w->ninlined;

	while (i-- > 0 && w->inlined[i] != name)
		;
	return i;
}

static int inlined_functions(struct pprof *w)
{
	const struct profile *p = w->profile;

	w->inlined = calloc(w->spots.n + 1, sizeof(*w->inlined));
	if (!w->inlined)
		return -ENOMEM;
	for (size_t i = 0; i < w->spots.n; i++) {
		const struct spot *spot = &w->spots.spot[i];

		if (!spot->inlined || inlined_index(w, spot->inlined) != SIZE_MAX)
			continue;
		w->inlined[w->ninlined++] = spot->inlined;
		function(w, p->nfunctions + 2 + w->ninlined, spot->inlined,
			 spot->file ? spot->file : "");
	}
	return 0;
}

/* The ids are the places in the profile's own order, two more, and those of inlined ones. */
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
		function(w, i + 1, name, file[i] ? file[i] : "");
	}
	function(w, p->nfunctions + 1, "[unmatched]", "");
	function(w, p->nfunctions + 2, "[lost]", "");
	return inlined_functions(w);
}

static void line_of(struct pprof *w, __u64 function_id, int line)
{
	protobuf_number(w->line.f, LINE_FUNCTION, function_id);
	protobuf_number(w->line.f, LINE_NUMBER, (__u64)line);
	message_into(&w->line, &w->part, LOCATION_LINE);
}

/*
 * A sample of so many ticks at a location of its own. @address 0: in no mapping. What was inlined
 * comes before the function that has it.
 */
static void sample(struct pprof *w, __u32 object, __u64 address, __u64 function_id, int line,
		   const char *inlined, __u64 ticks)
{
	__u64 id = ++w->nlocations, value[] = { ticks, ticks * w->profile->tick_ns };

	protobuf_number(w->part.f, LOCATION_ID, id);
	if (address) {
		protobuf_number(w->part.f, LOCATION_MAPPING, mapping_id(w, object));
		protobuf_number(w->part.f, LOCATION_ADDRESS, address);
	}
	if (inlined)
		line_of(w, w->profile->nfunctions + 3 + inlined_index(w, inlined), line);
	if (function_id)
		line_of(w, function_id, inlined ? 0 : line);
	message_into(&w->part, &w->whole, PROFILE_LOCATION);
	protobuf_numbers(w->part.f, SAMPLE_LOCATION, &id, 1);
	protobuf_numbers(w->part.f, SAMPLE_VALUE, value, 2);
	message_into(&w->part, &w->whole, PROFILE_SAMPLE);
}

static void samples(struct pprof *w)
{
	const struct profile *p = w->profile;

	for (size_t i = 0; i < w->spots.n; i++) {
		const struct spot *spot = &w->spots.spot[i];
		__u32 object = spot->place.object;

		sample(w, object, extent_address(&w->extents[object], spot->place.offset),
		       spot->function ? (__u64)(spot->function - p->functions) + 1 : 0,
		       spot->file ? spot->line : 0, spot->inlined, spot->place.count);
	}
	if (p->unmatched)
		sample(w, 0, 0, p->nfunctions + 1, 0, NULL, p->unmatched);
	if (p->lost)
		sample(w, 0, 0, p->nfunctions + 2, 0, NULL, p->lost);
}

static int gzip(FILE *out, const char *bytes, size_t n)
{
	unsigned char buf[16384] = { 0 };
	z_stream z = { .next_in = (unsigned char *)bytes, .avail_in = (uInt)n };
	int ret;

	if (n > UINT32_MAX || deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
					   Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	do {
		z.next_out = buf;
		z.avail_out = sizeof(buf);
		ret = deflate(&z, Z_FINISH);
		fwrite(buf, 1, sizeof(buf) - z.avail_out, out);
	} while (ret == Z_OK);
	deflateEnd(&z);
	return ret == Z_STREAM_END ? 0 : -EIO;
}

static int write_all(FILE *out, struct pprof *w)
{
	int err = spots_init(&w->spots, w->profile, true);

	if (!err)
		err = message_init(&w->whole);
	if (!err)
		err = message_init(&w->part);
	if (!err)
		err = message_init(&w->line);
	if (!err && !w->extents)
		err = -ENOMEM;
	if (!err)
		err = profile_main_object(&w->main, w->profile);
	if (err < 0)
		return err;
	head(w);
	mappings(w);
	err = functions(w);
	if (err < 0)
		return err;
	samples(w);
	fflush(w->whole.f);
	if (ferror(w->whole.f) || ferror(w->part.f) || ferror(w->line.f))
		return -ENOMEM;
	return gzip(out, w->whole.bytes, w->whole.n);
}

int pprof_write(FILE *out, const struct profile *p)
{
	struct pprof w = { .profile = p, .extents = extents_new(p) };
	int err = write_all(out, &w);

	spots_fini(&w.spots);
	message_fini(&w.whole);
	message_fini(&w.part);
	message_fini(&w.line);
	free(w.extents);
	free(w.inlined);
	return err;
}
