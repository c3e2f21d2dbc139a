/* profile_proto.c - writes the messages of pprof's profile.proto */
#include <errno.h>

#include "profile_proto.h"

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

int proto_init(struct profile_proto *w)
{
	int err;

	*w = (struct profile_proto){ 0 };
	err = message_init(&w->whole);
	if (!err)
		err = message_init(&w->part);
	if (!err)
		err = message_init(&w->line);
	return err;
}

int proto_complete(struct profile_proto *w)
{
	string_table_write(&w->strings, w->whole.f, PROFILE_STRING);
	fflush(w->whole.f);
	return w->strings.failed || ferror(w->whole.f) || ferror(w->part.f) || ferror(w->line.f)
		       ? -ENOMEM
		       : 0;
}

void proto_fini(struct profile_proto *w)
{
	message_fini(&w->whole);
	message_fini(&w->part);
	message_fini(&w->line);
	string_table_fini(&w->strings);
}

/* Omits 0, which is what a reader takes a missing number for. */
static void number(const struct message *m, unsigned int field, __u64 value)
{
	if (value)
		protobuf_number(m->f, field, value);
}

static void string(struct profile_proto *w, const struct message *m, unsigned int field,
		   const char *s)
{
	number(m, field, string_table_add(&w->strings, s));
}

static void value_type(struct profile_proto *w, unsigned int field, const char *type,
		       const char *unit)
{
	string(w, &w->part, VALUE_TYPE, type);
	string(w, &w->part, VALUE_UNIT, unit);
	message_into(&w->part, &w->whole, field);
}

void proto_sample_type(struct profile_proto *w, const char *type, const char *unit)
{
	value_type(w, PROFILE_SAMPLE_TYPE, type, unit);
}

void proto_period(struct profile_proto *w, const char *type, const char *unit, __u64 period)
{
	value_type(w, PROFILE_PERIOD_TYPE, type, unit);
	number(&w->whole, PROFILE_PERIOD, period);
}

void proto_default_type(struct profile_proto *w, const char *type)
{
	string(w, &w->whole, PROFILE_DEFAULT_TYPE, type);
}

void proto_time(struct profile_proto *w, __u64 began_ns, __u64 duration_ns)
{
	number(&w->whole, PROFILE_TIME_NS, began_ns);
	number(&w->whole, PROFILE_DURATION_NS, duration_ns);
}

void proto_comment(struct profile_proto *w, const char *text)
{
	string(w, &w->whole, PROFILE_COMMENT, text);
}

static void key_comment(struct profile_proto *w, const char *key, const char *value)
{
	char text[128];

	if (!*value)
		return;
	snprintf(text, sizeof(text), "%s=%s", key, value);
	proto_comment(w, text);
}

void proto_host(struct profile_proto *w, const struct host_identity *h)
{
	key_comment(w, "host", h->name);
	key_comment(w, "kernel", h->kernel);
	key_comment(w, "arch", h->architecture);
	key_comment(w, "boot_id", h->boot_id);
}

void proto_mapping(struct profile_proto *w, __u64 id, const struct proto_mapping *m)
{
	number(&w->part, MAPPING_ID, id);
	number(&w->part, MAPPING_START, m->start);
	number(&w->part, MAPPING_LIMIT, m->limit);
	number(&w->part, MAPPING_OFFSET, m->offset);
	string(w, &w->part, MAPPING_FILE, m->file);
	string(w, &w->part, MAPPING_BUILD_ID, m->build_id);
	number(&w->part, MAPPING_HAS_FUNCTIONS, m->has_functions);
	message_into(&w->part, &w->whole, PROFILE_MAPPING);
}

void proto_function(struct profile_proto *w, __u64 id, const char *name, const char *file)
{
	number(&w->part, FUNCTION_ID, id);
	string(w, &w->part, FUNCTION_NAME, name);
	string(w, &w->part, FUNCTION_SYSTEM, name);
	string(w, &w->part, FUNCTION_FILE, file);
	message_into(&w->part, &w->whole, PROFILE_FUNCTION);
}

void proto_line(struct profile_proto *w, __u64 function_id, int line)
{
	number(&w->line, LINE_FUNCTION, function_id);
	number(&w->line, LINE_NUMBER, (__u64)line);
	message_into(&w->line, &w->part, LOCATION_LINE);
}

void proto_location(struct profile_proto *w, __u64 id, __u64 mapping, __u64 address)
{
	number(&w->part, LOCATION_ID, id);
	number(&w->part, LOCATION_MAPPING, mapping);
	number(&w->part, LOCATION_ADDRESS, address);
	message_into(&w->part, &w->whole, PROFILE_LOCATION);
}

void proto_label(struct profile_proto *w, const char *key, const char *text)
{
	if (!text || !*text)
		return;
	string(w, &w->line, LABEL_KEY, key);
	string(w, &w->line, LABEL_STRING, text);
	message_into(&w->line, &w->part, SAMPLE_LABEL);
}

void proto_number_label(struct profile_proto *w, const char *key, __u64 value)
{
	if (!value)
		return;
	string(w, &w->line, LABEL_KEY, key);
	number(&w->line, LABEL_NUMBER, value);
	message_into(&w->line, &w->part, SAMPLE_LABEL);
}

void proto_sample(struct profile_proto *w, const __u64 *location, size_t n, __u64 samples,
		  __u64 period)
{
	const __u64 value[] = { samples, samples * period };

	protobuf_numbers(w->part.f, SAMPLE_LOCATION, location, n);
	protobuf_numbers(w->part.f, SAMPLE_VALUE, value, period ? 2 : 1);
	message_into(&w->part, &w->whole, PROFILE_SAMPLE);
}
