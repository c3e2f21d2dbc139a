/* otlp_proto.c - writes a profile as OpenTelemetry's ExportProfilesServiceRequest */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "profile_content.h"

/*
 * opentelemetry.proto.profiles.v1development, of proto 1.11. All samples share one dictionary: its
 * tables have the zero value as entry 0, each entry once, and no entry that nothing refers to. An
 * entry is interned as its encoded message when the first sample refers to it.
 *
 * Each systemd unit or cgroup is a resource with one profile, which has the number of samples as
 * its only value: a profile has one type, and the time of a sample is its period.
 */
enum request_field { REQUEST_RESOURCE_PROFILES = 1, REQUEST_DICTIONARY = 2 };
enum resource_profiles_field { RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPE = 2 };
enum resource_field { RESOURCE_ATTRIBUTES = 1 };
enum scope_profiles_field { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILES = 2 };
enum scope_field { SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum key_value_field { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum any_value_field { ANY_STRING = 1, ANY_INT = 3 };
enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLES = 2,
	PROFILE_TIME_NS = 3,
	PROFILE_DURATION_NS = 4,
	PROFILE_PERIOD_TYPE = 5,
	PROFILE_PERIOD = 6,
	PROFILE_ID = 7,
	PROFILE_ATTRIBUTES = 11,
};
enum value_type_field { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum sample_field { SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES = 2, SAMPLE_VALUES = 4 };
enum dictionary_field {
	DICTIONARY_MAPPINGS = 1,
	DICTIONARY_LOCATIONS = 2,
	DICTIONARY_FUNCTIONS = 3,
	DICTIONARY_LINKS = 4,
	DICTIONARY_STRINGS = 5,
	DICTIONARY_ATTRIBUTES = 6,
	DICTIONARY_STACKS = 7,
};
enum stack_field { STACK_LOCATIONS = 1 };
enum location_field {
	LOCATION_MAPPING = 1,
	LOCATION_ADDRESS = 2,
	LOCATION_LINES = 3,
	LOCATION_ATTRIBUTES = 4,
};
enum line_field { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum function_field { FUNCTION_NAME = 1, FUNCTION_SYSTEM = 2, FUNCTION_FILE = 3 };
enum mapping_field {
	MAPPING_START = 1,
	MAPPING_LIMIT = 2,
	MAPPING_OFFSET = 3,
	MAPPING_FILE = 4,
	MAPPING_ATTRIBUTES = 5,
};
enum attribute_field { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2 };

/* The samples of one resource: those with the same stack and attributes are one. */
struct resource {
	struct intern_table samples; /* the beginnings of their messages */
	__u64 *count;
};

struct otlp {
	const struct profile_content *content;
	__u32 *location; /* of each location of @content: its number here; 0: none yet */
	struct intern_table strings;
	struct intern_table mappings;
	struct intern_table locations;
	struct intern_table functions;
	struct intern_table attributes;
	struct intern_table stacks;
	struct intern_table resources; /* their messages */
	struct resource *resource;     /* of each of these, from 1 on */
	/* Messages by depth: a part of each is written before it. */
	struct message part[4];
	bool failed;
};

/* The names by which OpenTelemetry knows the labels of pprof's format. */
static const struct attribute_name {
	const char *label;
	const char *name;
	bool of_resource;
} attribute_names[] = {
	{ "mode", "cpu.mode", false },
	{ "command", "process.executable.name", false },
	{ "comm", "process.executable.name", false },
	{ "thread", "thread.name", false },
	{ "pid", "process.pid", false },
	{ "tid", "thread.id", false },
	{ "unit", "systemd.unit", true },
	{ "cgroup", "linux.cgroup.path", true },
	{ "container", "container.id", true },
	{ "container_name", "container.name", true },
	{ "container_runtime", "container.runtime.name", true },
	{ "pod", "k8s.pod.uid", true },
};

static const struct attribute_name *attribute_name(const char *label)
{
	for (size_t i = 0; i < sizeof(attribute_names) / sizeof(*attribute_names); i++) {
		if (!strcmp(attribute_names[i].label, label))
			return &attribute_names[i];
	}
	return NULL;
}

static const char *text(const struct otlp *w, __u32 number)
{
	return intern_text(&w->content->strings, number);
}

/* The number of a text of @content in the dictionary. */
static __u32 string(struct otlp *w, __u32 number)
{
	return intern_string(&w->strings, text(w, number));
}

/* Takes message @m as an entry of @t. Returns its number. */
static __u32 entry(struct intern_table *t, struct message *m)
{
	__u32 number;

	fflush(m->f);
	number = intern_bytes(t, m->bytes, m->n);
	rewind(m->f);
	return number;
}

static void string_value(const struct message *m, const char *s)
{
	protobuf_bytes(m->f, ANY_STRING, s, strlen(s));
}

/* The number of an attribute; @s NULL: it is @number. */
static __u32 attribute(struct otlp *w, const char *key, const char *s, __u64 number)
{
	struct message *whole = &w->part[2], *value = &w->part[3];

	protobuf_number(whole->f, ATTRIBUTE_KEY, intern_string(&w->strings, key));
	if (s)
		string_value(value, s);
	else
		protobuf_number(value->f, ANY_INT, number);
	message_into(value, whole, ATTRIBUTE_VALUE);
	return entry(&w->attributes, whole);
}

static __u32 mapping(struct otlp *w, const struct content_mapping *m)
{
	struct message *whole = &w->part[1];
	const char *build_id = text(w, m->build_id);
	__u32 id = *build_id ? attribute(w, "process.executable.build_id.gnu", build_id, 0) : 0;

	protobuf_optional(whole->f, MAPPING_START, m->start);
	protobuf_optional(whole->f, MAPPING_LIMIT, m->limit);
	protobuf_optional(whole->f, MAPPING_OFFSET, m->offset);
	protobuf_optional(whole->f, MAPPING_FILE, string(w, m->file));
	if (id)
		protobuf_indices(whole->f, MAPPING_ATTRIBUTES, &id, 1);
	return entry(&w->mappings, whole);
}

static __u32 function(struct otlp *w, const struct content_function *f)
{
	struct message *whole = &w->part[1];

	protobuf_optional(whole->f, FUNCTION_NAME, string(w, f->name));
	protobuf_optional(whole->f, FUNCTION_SYSTEM, string(w, f->name));
	protobuf_optional(whole->f, FUNCTION_FILE, string(w, f->file));
	return entry(&w->functions, whole);
}

static __u32 new_location(struct otlp *w, __u32 id)
{
	const struct profile_content *c = w->content;
	const struct content_location *l = &c->location[id - 1];
	const struct content_mapping *m = l->mapping ? &c->mapping[l->mapping - 1] : NULL;
	struct message *whole = &w->part[0], *line = &w->part[1];
	const char *type = m ? text(w, m->frame_type) : "";
	__u32 type_attribute = *type ? attribute(w, "profile.frame.type", type, 0) : 0;

	protobuf_optional(whole->f, LOCATION_MAPPING, m ? mapping(w, m) : 0);
	protobuf_optional(whole->f, LOCATION_ADDRESS, l->address);
	for (__u32 i = id > 1 ? l[-1].end_line : 0; i < l->end_line; i++) {
		__u32 of = c->line[i].function ? function(w, &c->function[c->line[i].function - 1])
					       : 0;

		protobuf_optional(line->f, LINE_FUNCTION, of);
		protobuf_optional(line->f, LINE_NUMBER, c->line[i].number);
		message_into(line, whole, LOCATION_LINES);
	}
	if (type_attribute)
		protobuf_indices(whole->f, LOCATION_ATTRIBUTES, &type_attribute, 1);
	return entry(&w->locations, whole);
}

static __u32 location(struct otlp *w, __u32 id)
{
	if (!w->location[id - 1])
		w->location[id - 1] = new_location(w, id);
	return w->location[id - 1];
}

static __u32 stack(struct otlp *w, const __u32 *path, size_t n)
{
	__u32 *number = calloc(n + 1, sizeof(*number));

	if (!number) {
		w->failed = true;
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		number[i] = location(w, path[i]);
	protobuf_indices(w->part[0].f, STACK_LOCATIONS, number, n);
	free(number);
	return entry(&w->stacks, &w->part[0]);
}

static void resource_attribute(struct otlp *w, const char *key, const char *value)
{
	struct message *whole = &w->part[0], *attribute = &w->part[1], *any = &w->part[2];

	if (!*value)
		return;
	protobuf_bytes(attribute->f, KEY_VALUE_KEY, key, strlen(key));
	string_value(any, value);
	message_into(any, attribute, KEY_VALUE_VALUE);
	message_into(attribute, whole, RESOURCE_ATTRIBUTES);
}

/*
 * The name of a service is that of the container, or of the unit without its suffix. A container
 * without a name has none, so that a collector which knows its pod gives it one.
 */
static void service(struct otlp *w, const char *unit, const char *container)
{
	char name[512];
	size_t n = strlen(unit);

	if (n > 8 && !strcmp(unit + n - 8, ".service"))
		n -= 8;
	snprintf(name, sizeof(name), "%.*s", (int)n, unit);
	if (container)
		resource_attribute(w, "service.name", container);
	else
		resource_attribute(w, "service.name", *name ? name : text(w, w->content->service));
}

/* The resource of the labels from @first to before @end. */
static struct resource *resource(struct otlp *w, __u32 first, __u32 end)
{
	const struct profile_content *c = w->content;
	const char *unit = "", *container = NULL;
	size_t known = w->resources.n;
	struct resource *more;
	__u32 number;

	for (__u32 i = first; i < end; i++) {
		const struct attribute_name *a = attribute_name(text(w, c->label[i].key));
		const char *value;

		if (!a || !a->of_resource)
			continue;
		value = text(w, c->label[i].text);
		if (!strcmp(a->label, "unit"))
			unit = value;
		else if (!strcmp(a->label, "container_name"))
			container = value;
		else if (!strcmp(a->label, "container") && !container)
			container = "";
		resource_attribute(w, a->name, value);
	}
	service(w, unit, container);
	resource_attribute(w, "host.name", c->host.name);
	resource_attribute(w, "host.arch", c->host.architecture);
	resource_attribute(w, "os.type", "linux");
	resource_attribute(w, "os.version", c->host.kernel);
	resource_attribute(w, "host.boot.id", c->host.boot_id);
	number = entry(&w->resources, &w->part[0]);
	if (number && w->resources.n > known) {
		more = grow(w->resource, known, sizeof(*more));
		w->failed |= !more;
		if (!more)
			return NULL;
		w->resource = more;
		more[known] = (struct resource){ 0 };
	}
	return number && !w->failed ? &w->resource[number - 1] : NULL;
}

static void add_count(struct otlp *w, struct resource *r, __u32 number, size_t known, __u64 count)
{
	if (r->samples.n > known) {
		__u64 *more = grow(r->count, known, sizeof(*more));

		w->failed |= !more;
		if (!more)
			return;
		r->count = more;
		more[known] = 0;
	}
	if (number)
		r->count[number - 1] += count;
}

static void sample(struct otlp *w, const struct content_sample *s, __u32 path, __u32 label)
{
	const struct profile_content *c = w->content;
	struct resource *r = resource(w, label, s->end_label);
	__u32 at = stack(w, c->path + path, s->end_path - path), known, number, n = 0, own[16];

	if (!r)
		return;
	for (; label < s->end_label && n < 16; label++) {
		const struct content_label *l = &c->label[label];
		const struct attribute_name *a = attribute_name(text(w, l->key));

		if (a && !a->of_resource)
			own[n++] =
				attribute(w, a->name, l->text ? text(w, l->text) : NULL, l->number);
	}
	protobuf_number(w->part[0].f, SAMPLE_STACK, at);
	if (n)
		protobuf_indices(w->part[0].f, SAMPLE_ATTRIBUTES, own, n);
	known = (__u32)r->samples.n;
	number = entry(&r->samples, &w->part[0]);
	add_count(w, r, number, known, s->count);
}

static void value_type(struct otlp *w, unsigned int field, __u32 type, __u32 unit)
{
	struct message *whole = &w->part[2];

	protobuf_optional(whole->f, VALUE_TYPE, type);
	protobuf_optional(whole->f, VALUE_UNIT, unit);
	message_into(whole, &w->part[1], field);
}

/*
 * An id that a profile sent twice has both times: of the host, the boot, the interval and the
 * resource.
 */
static void profile_id(struct otlp *w, const struct interned *resource)
{
	const struct profile_content *c = w->content;
	const __u64 time[] = { c->began_ns, c->duration_ns };
	__u64 half[2] = { 0xcbf29ce484222325u, 0x9ae16a3b2f90404fu };

	for (size_t k = 0; k < 2; k++) {
		for (size_t i = 0; i < resource->n; i++)
			half[k] = (half[k] ^ (unsigned char)resource->bytes[i]) * 0x100000001b3u;
		for (size_t i = 0; i < 2; i++)
			half[k] = (half[k] ^ time[i]) * 0x9e3779b97f4a7c15u;
		half[k] = (half[k] ^ half[k] >> 32) | 1;
	}
	protobuf_bytes(w->part[1].f, PROFILE_ID, half, sizeof(half));
}

/* The type of the profile: counts with a period, or of threads asleep their time. */
static __u64 types(struct otlp *w)
{
	const struct profile_content *c = w->content;
	const char *name = text(w, c->period_type.type);
	bool off_cpu = !strcmp(name, "off-cpu");
	__u32 type = intern_string(&w->strings, off_cpu ? "off_cpu" : name),
	      unit = string(w, c->period_type.unit);

	if (off_cpu)
		value_type(w, PROFILE_SAMPLE_TYPE, type, unit);
	else
		value_type(w, PROFILE_SAMPLE_TYPE, intern_string(&w->strings, "samples"),
			   intern_string(&w->strings, "count"));
	value_type(w, PROFILE_PERIOD_TYPE, type, unit);
	if (off_cpu)
		return c->period;
	protobuf_optional(w->part[1].f, PROFILE_PERIOD, c->period);
	return 1;
}

/* Writes the profile of resource @at into part 0. */
static void profile(struct otlp *w, size_t at)
{
	const struct resource *r = &w->resource[at];
	struct message *whole = &w->part[1], *one = &w->part[2];
	__u32 least = w->content->least
			      ? attribute(w, "profil.least_samples", NULL, w->content->least)
			      : 0;
	__u64 factor = types(w);

	protobuf_fixed64(whole->f, PROFILE_TIME_NS, w->content->began_ns);
	protobuf_optional(whole->f, PROFILE_DURATION_NS, w->content->duration_ns);
	profile_id(w, &w->resources.entry[at]);
	if (least)
		protobuf_indices(whole->f, PROFILE_ATTRIBUTES, &least, 1);
	for (size_t i = 0; i < r->samples.n; i++) {
		__u64 value = r->count[i] * factor;

		fwrite(r->samples.entry[i].bytes, 1, r->samples.entry[i].n, one->f);
		protobuf_numbers(one->f, SAMPLE_VALUES, &value, 1);
		message_into(one, whole, PROFILE_SAMPLES);
	}
	message_into(whole, &w->part[0], SCOPE_PROFILES_PROFILES);
}

static void resource_profiles(struct otlp *w, struct message *out, size_t at)
{
	struct message *scoped = &w->part[0], *m = &w->part[1];

	protobuf_bytes(m->f, SCOPE_NAME, "profil", 6);
	protobuf_bytes(m->f, SCOPE_VERSION, PROFIL_VERSION, strlen(PROFIL_VERSION));
	message_into(m, scoped, SCOPE_PROFILES_SCOPE);
	profile(w, at);
	protobuf_bytes(m->f, RESOURCE_PROFILES_RESOURCE, w->resources.entry[at].bytes,
		       w->resources.entry[at].n);
	message_into(scoped, m, RESOURCE_PROFILES_SCOPE);
	message_into(m, out, REQUEST_RESOURCE_PROFILES);
}

static void dictionary(struct otlp *w, struct message *out)
{
	struct message *m = &w->part[0];

	intern_write(&w->mappings, m->f, DICTIONARY_MAPPINGS);
	intern_write(&w->locations, m->f, DICTIONARY_LOCATIONS);
	intern_write(&w->functions, m->f, DICTIONARY_FUNCTIONS);
	protobuf_bytes(m->f, DICTIONARY_LINKS, "", 0);
	intern_write(&w->strings, m->f, DICTIONARY_STRINGS);
	intern_write(&w->attributes, m->f, DICTIONARY_ATTRIBUTES);
	intern_write(&w->stacks, m->f, DICTIONARY_STACKS);
	message_into(m, out, REQUEST_DICTIONARY);
}

static int write_all(struct otlp *w, struct message *out)
{
	const struct profile_content *c = w->content;
	int err = ferror(out->f);

	for (size_t i = 0; i < c->nsamples; i++)
		sample(w, &c->sample[i], i ? c->sample[i - 1].end_path : 0,
		       i ? c->sample[i - 1].end_label : 0);
	if (w->failed || w->resources.failed)
		return -ENOMEM;
	for (size_t i = 0; i < w->resources.n; i++)
		resource_profiles(w, out, i);
	dictionary(w, out);
	fflush(out->f);
	for (size_t i = 0; i < 4; i++)
		err |= ferror(w->part[i].f);
	return err || w->strings.failed || w->mappings.failed || w->locations.failed ||
			       w->functions.failed || w->attributes.failed || w->stacks.failed
		       ? -ENOMEM
		       : 0;
}

static void otlp_fini(struct otlp *w)
{
	for (size_t i = 0; i < w->resources.n && w->resource; i++) {
		intern_fini(&w->resource[i].samples);
		free(w->resource[i].count);
	}
	intern_fini(&w->strings);
	intern_fini(&w->mappings);
	intern_fini(&w->locations);
	intern_fini(&w->functions);
	intern_fini(&w->attributes);
	intern_fini(&w->stacks);
	intern_fini(&w->resources);
	free(w->resource);
	free(w->location);
	for (size_t i = 0; i < 4; i++)
		message_fini(&w->part[i]);
}

int content_write_otlp(struct profile_content *c, struct message *out)
{
	struct otlp w = { .content = c };
	int err = content_complete(c);

	w.location = calloc(c->nlocations + 1, sizeof(*w.location));
	if (!w.location)
		err = -ENOMEM;
	for (size_t i = 0; i < 4 && !err; i++)
		err = message_init(&w.part[i]);
	err = err ?: write_all(&w, out);
	otlp_fini(&w);
	return err;
}
