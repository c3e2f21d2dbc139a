/* profile_content.c - what pprof's and OpenTelemetry's formats are written from */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "symbols/proc/container.h"
#include "profile_content.h"

/* Room for element @n of *@array, zeroed; a scratch one if out of memory. */
static void *add(struct profile_content *c, void *array, size_t *n, size_t size)
{
	static char scratch[sizeof(struct content_mapping)];
	char **p = array, *more = grow(*p, *n, size);

	if (!more) {
		c->failed = true;
		return scratch;
	}
	*p = more;
	more += (*n)++ * size;
	for (size_t i = 0; i < size; i++)
		more[i] = 0;
	return more;
}

#define ADD(c, array, n) \
	((__typeof__((c)->array))add((c), &(c)->array, &(c)->n, sizeof(*(c)->array)))

static __u32 string(struct profile_content *c, const char *s)
{
	return intern_string(&c->strings, s);
}

const char *content_frame_type(const struct object *o)
{
	static const char *const names[][2] = { { "python", "cpython" }, { "node", "v8js" },
						{ "java", "jvm" },	 { "php", "php" },
						{ "ruby", "ruby" },	 { "perl", "perl" },
						{ "luajit", "luajit" } };

	if (o->kind == OBJECT_KERNEL)
		return "kernel";
	if (o->kind == OBJECT_FILE || o->kind == OBJECT_VDSO)
		return "native";
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (o->kind == OBJECT_INTERPRETED && !strcmp(o->path, names[i][0]))
			return names[i][1];
	}
	return NULL;
}

void proto_sample_type(struct profile_content *c, const char *type, const char *unit)
{
	c->type[c->ntypes++] = (struct content_type){ string(c, type), string(c, unit) };
}

void proto_period(struct profile_content *c, const char *type, const char *unit, __u64 period)
{
	c->period_type = (struct content_type){ string(c, type), string(c, unit) };
	c->period = period;
}

void proto_default_type(struct profile_content *c, const char *type)
{
	c->default_type = string(c, type);
}

void proto_time(struct profile_content *c, __u64 began_ns, __u64 duration_ns)
{
	c->began_ns = began_ns;
	c->duration_ns = duration_ns;
}

void proto_comment(struct profile_content *c, const char *text)
{
	*ADD(c, comment, ncomments) = string(c, text);
}

static void key_comment(struct profile_content *c, const char *key, const char *value)
{
	char text[128];

	if (!*value)
		return;
	snprintf(text, sizeof(text), "%s=%s", key, value);
	proto_comment(c, text);
}

void proto_host(struct profile_content *c, const struct host_identity *h, const char *service)
{
	c->host = *h;
	c->service = string(c, service);
	key_comment(c, "host", h->name);
	key_comment(c, "kernel", h->kernel);
	key_comment(c, "arch", h->architecture);
	key_comment(c, "boot_id", h->boot_id);
}

__u32 proto_mapping(struct profile_content *c, const struct proto_mapping *m)
{
	*ADD(c, mapping, nmappings) = (struct content_mapping){
		.start = m->start,
		.limit = m->limit,
		.offset = m->offset,
		.file = string(c, m->file),
		.build_id = string(c, m->build_id),
		.frame_type = string(c, m->frame_type ? m->frame_type : ""),
		.has_functions = true,
	};
	return (__u32)c->nmappings;
}

__u32 proto_function(struct profile_content *c, const char *name, const char *file)
{
	*ADD(c, function, nfunctions) =
		(struct content_function){ string(c, name), string(c, file) };
	return (__u32)c->nfunctions;
}

void proto_line(struct profile_content *c, __u64 function_id, int line)
{
	*ADD(c, line, nlines) = (struct content_line){ (__u32)function_id, (__u32)line };
}

__u32 proto_location(struct profile_content *c, __u64 mapping, __u64 address)
{
	__u32 lines = c->nlocations ? c->location[c->nlocations - 1].end_line : 0;

	if (mapping && lines == c->nlines)
		c->mapping[mapping - 1].has_functions = false;
	*ADD(c, location, nlocations) =
		(struct content_location){ address, (__u32)mapping, (__u32)c->nlines };
	return (__u32)c->nlocations;
}

void proto_label(struct profile_content *c, const char *key, const char *text)
{
	if (text && *text)
		*ADD(c, label, nlabels) =
			(struct content_label){ string(c, key), string(c, text), 0 };
}

void proto_number_label(struct profile_content *c, const char *key, __u64 value)
{
	if (value)
		*ADD(c, label, nlabels) = (struct content_label){ string(c, key), 0, value };
}

void content_container(struct profile_content *c, const char *cgroup)
{
	struct container of;

	if (!cgroup || !container_of(&of, cgroup))
		return;
	proto_label(c, "container", of.id);
	proto_label(c, "container_name", of.name);
	proto_label(c, "container_runtime", of.runtime);
	proto_label(c, "pod", of.pod);
}

void content_owner(struct profile_content *c, const char *command, const struct owner *o)
{
	proto_label(c, command, o->command);
	proto_label(c, "unit", o->unit);
	proto_label(c, "cgroup", o->cgroup);
	content_container(c, o->cgroup);
}

void proto_sample(struct profile_content *c, const __u64 *location, size_t n, __u64 count)
{
	for (size_t i = 0; i < n; i++)
		*ADD(c, path, npath) = (__u32)location[i];
	*ADD(c, sample, nsamples) =
		(struct content_sample){ count, (__u32)c->npath, (__u32)c->nlabels };
}

int content_complete(struct profile_content *c)
{
	intern_clean(&c->strings);
	return c->failed || c->strings.failed ? -ENOMEM : 0;
}

void content_fini(struct profile_content *c)
{
	intern_fini(&c->strings);
	free(c->comment);
	free(c->mapping);
	free(c->function);
	free(c->line);
	free(c->location);
	free(c->label);
	free(c->path);
	free(c->sample);
	*c = (struct profile_content){ 0 };
}
