/* pprof_proto.c - writes the messages of pprof's profile.proto */
#include <errno.h>

#include "base/cleanup.h"

#include "profile_content.h"

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
	PROFILE_DEFAULT_TYPE = 14,
};
enum value_type_field { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum sample_field { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum label_field { LABEL_KEY = 1, LABEL_STRING = 2, LABEL_NUMBER = 3 };
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

struct pprof_proto {
	const struct profile_content *content;
	struct message *whole;
	struct message part; /* of @whole: a mapping, function, location, sample or type */
	struct message line; /* of @part: a line of a location, or a label of a sample */
};

static void value_type(struct pprof_proto *w, unsigned int field, const struct content_type *t)
{
	protobuf_optional(w->part.f, VALUE_TYPE, t->type);
	protobuf_optional(w->part.f, VALUE_UNIT, t->unit);
	message_into(&w->part, w->whole, field);
}

static void head(struct pprof_proto *w)
{
	const struct profile_content *c = w->content;

	for (size_t i = 0; i < c->ntypes; i++)
		value_type(w, PROFILE_SAMPLE_TYPE, &c->type[i]);
	value_type(w, PROFILE_PERIOD_TYPE, &c->period_type);
	protobuf_optional(w->whole->f, PROFILE_PERIOD, c->period);
	protobuf_optional(w->whole->f, PROFILE_TIME_NS, c->began_ns);
	protobuf_optional(w->whole->f, PROFILE_DURATION_NS, c->duration_ns);
	protobuf_optional(w->whole->f, PROFILE_DEFAULT_TYPE, c->default_type);
	for (size_t i = 0; i < c->ncomments; i++)
		protobuf_number(w->whole->f, PROFILE_COMMENT, c->comment[i]);
}

static void mapping(struct pprof_proto *w, __u64 id, const struct content_mapping *m)
{
	protobuf_optional(w->part.f, MAPPING_ID, id);
	protobuf_optional(w->part.f, MAPPING_START, m->start);
	protobuf_optional(w->part.f, MAPPING_LIMIT, m->limit);
	protobuf_optional(w->part.f, MAPPING_OFFSET, m->offset);
	protobuf_optional(w->part.f, MAPPING_FILE, m->file);
	protobuf_optional(w->part.f, MAPPING_BUILD_ID, m->build_id);
	protobuf_optional(w->part.f, MAPPING_HAS_FUNCTIONS, m->has_functions);
	message_into(&w->part, w->whole, PROFILE_MAPPING);
}

static void function(struct pprof_proto *w, __u64 id, const struct content_function *f)
{
	protobuf_optional(w->part.f, FUNCTION_ID, id);
	protobuf_optional(w->part.f, FUNCTION_NAME, f->name);
	protobuf_optional(w->part.f, FUNCTION_SYSTEM, f->name);
	protobuf_optional(w->part.f, FUNCTION_FILE, f->file);
	message_into(&w->part, w->whole, PROFILE_FUNCTION);
}

static void location(struct pprof_proto *w, size_t at)
{
	const struct profile_content *c = w->content;
	const struct content_location *l = &c->location[at];

	for (__u32 i = at ? l[-1].end_line : 0; i < l->end_line; i++) {
		protobuf_optional(w->line.f, LINE_FUNCTION, c->line[i].function);
		protobuf_optional(w->line.f, LINE_NUMBER, c->line[i].number);
		message_into(&w->line, &w->part, LOCATION_LINE);
	}
	protobuf_optional(w->part.f, LOCATION_ID, at + 1);
	protobuf_optional(w->part.f, LOCATION_MAPPING, l->mapping);
	protobuf_optional(w->part.f, LOCATION_ADDRESS, l->address);
	message_into(&w->part, w->whole, PROFILE_LOCATION);
}

static void sample(struct pprof_proto *w, size_t at)
{
	const struct profile_content *c = w->content;
	const struct content_sample *s = &c->sample[at];
	const __u64 value[] = { s->count, s->count * c->period };
	__u32 label = at ? s[-1].end_label : 0, path = at ? s[-1].end_path : 0;

	for (; label < s->end_label; label++) {
		protobuf_optional(w->line.f, LABEL_KEY, c->label[label].key);
		protobuf_optional(w->line.f, LABEL_STRING, c->label[label].text);
		protobuf_optional(w->line.f, LABEL_NUMBER, c->label[label].number);
		message_into(&w->line, &w->part, SAMPLE_LABEL);
	}
	protobuf_indices(w->part.f, SAMPLE_LOCATION, c->path + path, s->end_path - path);
	protobuf_numbers(w->part.f, SAMPLE_VALUE, value, c->ntypes);
	message_into(&w->part, w->whole, PROFILE_SAMPLE);
}

static int write_all(struct pprof_proto *w)
{
	const struct profile_content *c = w->content;

	head(w);
	for (size_t i = 0; i < c->nmappings; i++)
		mapping(w, i + 1, &c->mapping[i]);
	for (size_t i = 0; i < c->nfunctions; i++)
		function(w, i + 1, &c->function[i]);
	for (size_t i = 0; i < c->nlocations; i++)
		location(w, i);
	for (size_t i = 0; i < c->nsamples; i++)
		sample(w, i);
	intern_write(&c->strings, w->whole->f, PROFILE_STRING);
	fflush(w->whole->f);
	return ferror(w->whole->f) || ferror(w->part.f) || ferror(w->line.f) ? -ENOMEM : 0;
}

static void pprof_proto_fini(struct pprof_proto *w)
{
	message_fini(&w->part);
	message_fini(&w->line);
}

int content_write_pprof(struct profile_content *c, struct message *out)
{
	__cleanup(pprof_proto_fini) struct pprof_proto w = { .content = c, .whole = out };

	return content_complete(c) ?: message_init(&w.part) ?: message_init(&w.line) ?: write_all(&w);
}
