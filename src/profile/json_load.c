/* json_load.c - reads a profile that json_write() has written */
#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "json.h"
#include "json_interpreted.h"
#include "json_stacks.h"
#include "base/sanitize.h"
#include "outcomes.h"

/* The path of an object, from path_hex if it is not UTF-8. The caller frees it. */
static char *path_of(const json_t *o)
{
	const char *path = json_string_value(json_object_get(o, "path"));
	const char *hex = json_string_value(json_object_get(o, "path_hex"));
	size_t n = hex ? strlen(hex) / 2 : 0;
	char *bytes;

	if (!hex || !path)
		return path ? strdup(path) : NULL;
	bytes = calloc(n + 1, 1);
	if (!bytes)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		char digits[3] = { hex[2 * i], hex[2 * i + 1], '\0' };

		bytes[i] = (char)strtoul(digits, NULL, 16);
	}
	return bytes;
}

static bool is_hex(const char *text)
{
	return !text[strspn(text, "0123456789abcdef")];
}

/*
 * Files of older versions have one difference of address and offset for the whole object, "vaddr".
 */
static int load_segments(struct segments *out, const json_t *o)
{
	const json_t *all = json_object_get(o, "segments"), *one;
	json_int_t offset = 0, bytes = -1, vaddr = 0;
	int err = 0;
	size_t i;

	if (!all && !json_unpack((json_t *)o, "{sI}", "vaddr", &vaddr) && vaddr)
		return segments_add(out, &(struct segment){ 0, ~0ull, (__u64)vaddr });
	json_array_foreach(all, i, one) {
		if (json_unpack((json_t *)one, "[III!]", &offset, &bytes, &vaddr) < 0)
			return -EINVAL;
		err = segments_add(out,
				   &(struct segment){ (__u64)offset, (__u64)bytes, (__u64)vaddr });
		if (err < 0)
			return err;
	}
	return 0;
}

/* Reads a string, NULL if missing. Returns 0, -EINVAL or -ENOMEM. */
static int load_name(char **out, const json_t *from, const char *key)
{
	const json_t *name = json_object_get(from, key);

	*out = json_is_string(name) ? strdup(json_string_value(name)) : NULL;
	if (*out)
		return 0;
	return !name || json_is_null(name) ? 0 : json_is_string(name) ? -ENOMEM : -EINVAL;
}

static int load_objects(struct profile *p, const json_t *objects)
{
	const json_t *o;
	size_t i;

	json_array_foreach(objects, i, o) {
		__cleanup(freep) char *path = path_of(o);
		const char *build_id = json_string_value(json_object_get(o, "build_id"));
		int program = 0, pid = 0, err;
		const char *unnamed = json_string_value(json_object_get(o, "unnamed"));
		json_int_t bytes = 0, mtime_ns = 0;
		__u32 index;

		/* Missing in files of older versions. */
		json_unpack((json_t *)o, "{s?b s?i s?I s?I}", "program", &program, "pid", &pid,
			    "file_bytes", &bytes, "file_mtime_ns", &mtime_ns);
		if (!path || !build_id || strlen(build_id) >= PROFILE_BUILD_ID_MAX ||
		    !is_hex(build_id))
			return -EINVAL;
		if (profile_add_object(p, path, 0, 0, -1, &index) < 0)
			return -ENOMEM;
		strcpy(p->objects[index].build_id, build_id);
		p->objects[index].program = program;
		p->objects[index].file_bytes = (__u64)bytes;
		p->objects[index].file_mtime_ns = mtime_ns;
		snprintf(p->objects[index].unnamed, PROFILE_UNNAMED_MAX, "%s",
			 unnamed ? unnamed : "");
		p->objects[index].pid = pid;
		err = load_name(&p->objects[index].host, o, "host")
			      ?: load_name(&p->objects[index].jitdump, o, "jitdump")
			      ?: load_segments(&p->objects[index].segments, o)
			      ?: json_interpreted_load(&p->objects[index],
						       json_object_get(o, "interpreted"));
		if (err < 0)
			return err;
	}
	return 0;
}

static int load_places(struct places *t, const struct profile *p, const json_t *places)
{
	const json_t *place;
	size_t i;

	json_array_foreach(places, i, place) {
		json_int_t object, offset, width, count, group = 0;
		struct place at;
		int err;

		if (json_unpack((json_t *)place, "[IIII]", &object, &offset, &width, &count) < 0 ||
		    json_array_size(place) > 5 ||
		    (json_array_size(place) == 5 &&
		     json_unpack((json_t *)place, "[IIIII]", &object, &offset, &width, &count,
				 &group) < 0))
			return -EINVAL;
		if (object < 0 || (size_t)object >= p->nobjects || width < 0 ||
		    width > UINT32_MAX || count < 1 || (__u64)count > INT64_MAX - t->sum ||
		    (!width && offset) || group < 0 || (group && (size_t)group >= p->ngroups))
			return -EINVAL;
		at = (struct place){ (__u64)offset, (__u64)count, (__u32)object, width > 0,
				     (__u32)group };
		err = places_add(t, &at);
		if (err < 0)
			return err;
	}
	return 0;
}

/* Reads all kinds of places, after objects and groups. */
static int load_counts(struct profile *p, const json_t *root)
{
	int err = load_places(&p->places, p, json_object_get(root, "places"))
		      ?: load_places(&p->folded, p, json_object_get(root, "folded"))
		      ?: load_places(&p->sums, p, json_object_get(root, "sums"));

	p->binned = p->places.sum;
	return err;
}

/* All functions have the same number of slices, or none. The caller frees them. */
static int load_slices(__u64 **out, const struct profile *p, const json_t *slices)
{
	__cleanup(freep) __u64 *samples = NULL;
	const json_t *n;
	size_t i;

	if (json_array_size(slices) != p->nslices)
		return -EINVAL;
	if (!p->nslices)
		return 0;
	samples = calloc(p->nslices, sizeof(*samples));
	if (!samples)
		return -ENOMEM;
	json_array_foreach(slices, i, n) {
		if (!json_is_integer(n) || json_integer_value(n) < 0)
			return -EINVAL;
		samples[i] = (__u64)json_integer_value(n);
	}
	*out = steal(samples);
	return 0;
}

/* The object of a function, by its index or, in files of older versions, by its path. */
static __u32 object_of(const struct profile *p, const char *path, json_int_t index)
{
	__u32 i = 0;

	if (index >= 0 && (__u64)index < p->nobjects)
		return (__u32)index;
	while (i < p->nobjects && strcmp(p->objects[i].path, path) != 0)
		i++;
	return i;
}

static int load_function(struct profile *p, json_t *function)
{
	const char *name, *object;
	json_int_t samples, offset, size, index = -1;
	struct function f = { 0 };
	int named, err;

	if (json_unpack(function, "{ss ss sI sI sI sb s?I}", "name", &name, "object", &object,
			"samples", &samples, "offset", &offset, "size", &size, "named", &named,
			"object_index", &index) < 0 ||
	    samples < 1)
		return -EINVAL;
	f.object = object_of(p, object, index);
	if (f.object == p->nobjects)
		return -EINVAL;
	f.samples = (__u64)samples;
	f.offset = (__u64)offset;
	f.size = (__u64)size;
	err = load_slices(&f.slices, p, json_object_get(function, "slices"));
	if (err < 0)
		return err;
	f.name = named ? strdup(name) : NULL;
	if (!named || f.name)
		return profile_add_function(p, &f);
	free(f.slices);
	return -ENOMEM;
}

static int load_samples(struct profile *p, json_t *samples)
{
	json_int_t total, unmatched, lost;

	if (json_unpack(samples, "{sI sI sI}", "total", &total, "unmatched", &unmatched, "lost",
			&lost) < 0 ||
	    total < 0 || unmatched < 0 || lost < 0)
		return -EINVAL;
	p->total = (__u64)total;
	p->unmatched = (__u64)unmatched;
	p->lost = (__u64)lost;
	for (size_t i = 0; i < OUTCOMES; i++) {
		const json_t *count = json_object_get(samples, outcomes[i].name);

		if (count && !json_is_integer(count))
			return -EINVAL;
		*outcome_of(p, &outcomes[i]) = (__u64)json_integer_value(count);
	}
	return 0;
}

/* Missing in profiles of CPU time. */
static int load_event(struct profile *p, json_t *root)
{
	const char *event = NULL;
	json_int_t period = 0;

	if (json_unpack(root, "{s?s s?I}", "event", &event, "period", &period) < 0 || period < 0)
		return -EINVAL;
	p->period = (__u64)period;
	p->event = event ? strdup(event) : NULL;
	if (p->event)
		sanitize(p->event, strlen(event) + 1, event);
	return event && !p->event ? -ENOMEM : 0;
}

/* Missing in files of older versions. */
static int load_host(struct profile *p, json_t *root)
{
	const char *name = "", *kernel = "", *architecture = "", *boot_id = "";
	json_int_t started_boot_ns = 0;
	struct host_identity *h = &p->host;

	if (json_unpack(root, "{s?{s?s s?s s?s s?s} s?I}", "host", "name", &name, "kernel", &kernel,
			"architecture", &architecture, "boot_id", &boot_id, "started_boot_ns",
			&started_boot_ns) < 0)
		return -EINVAL;
	snprintf(h->name, sizeof(h->name), "%s", name);
	snprintf(h->kernel, sizeof(h->kernel), "%s", kernel);
	snprintf(h->architecture, sizeof(h->architecture), "%s", architecture);
	snprintf(h->boot_id, sizeof(h->boot_id), "%s", boot_id);
	p->started_boot_ns = (__u64)started_boot_ns;
	return 0;
}

static int load_head(struct profile *p, json_t *root)
{
	json_int_t slice = 0, started, tick, duration, cpu, processes = 0;
	const char *schema, *command;
	json_t *status, *samples;
	int pid, err;

	if (json_unpack(root, "{ss ss si sI so sI sI sI so s?I s?I}", "schema", &schema, "command",
			&command, "pid", &pid, "started", &started, "command_status", &status,
			"tick_ns", &tick, "duration_ns", &duration, "cpu_ns", &cpu, "samples",
			&samples, "slice_ns", &slice, "processes", &processes) < 0 ||
	    strcmp(schema, PROFILE_SCHEMA) != 0)
		return -EINVAL;
	err = load_samples(p, samples) ?: load_event(p, root) ?: load_host(p, root);
	if (err < 0)
		return err;
	p->command = strdup(command);
	p->pid = pid;
	p->started = started;
	p->tick_ns = (__u64)tick;
	p->duration_ns = (__u64)duration;
	p->cpu_ns = (__u64)cpu;
	p->processes = processes > 0 ? (size_t)processes : 0;
	p->slice_ns = (__u64)slice;
	if (json_is_integer(status)) {
		p->end_code = (int)json_integer_value(status);
		p->end = p->end_code > 128 ? PROFILE_KILLED : PROFILE_EXITED;
		p->end_code -= p->end_code > 128 ? 128 : 0;
	}
	return p->command ? 0 : -ENOMEM;
}

/* Checks sums without overflow. */
static bool adds_up(const struct profile *p)
{
	__u64 rest = p->binned;

	for (size_t i = 0; i < p->nfunctions; i++) {
		if (p->functions[i].samples > rest)
			return false;
		rest -= p->functions[i].samples;
	}
	return rest == 0 && p->binned <= p->total && p->unmatched <= p->total - p->binned &&
	       p->lost == p->total - p->binned - p->unmatched;
}

static int load_functions(struct profile *p, const json_t *functions)
{
	const json_t *slices = json_object_get(json_array_get(functions, 0), "slices");
	json_t *f;
	size_t i;

	p->nslices = json_array_size(slices);
	json_array_foreach(functions, i, f) {
		int err = load_function(p, f);

		if (err < 0)
			return err;
	}
	return adds_up(p) ? 0 : -EINVAL;
}

/* Takes ownership of the strings of @g. */
static int add_group(struct profile *p, struct group *g)
{
	__u32 index;

	if (!g->command)
		g->command = strdup("?");
	return profile_add_group(p, g, &index);
}

/* Skips group 0, for samples without a group: profile_add_group() makes it. */
static int load_groups(struct profile *p, const json_t *groups)
{
	json_t *group;
	size_t i;

	json_array_foreach(groups, i, group) {
		json_int_t uid = 0, start_ns = 0;
		struct group g = { 0 };
		int err;

		if (json_unpack(group, "{si si s?I s?I}", "pid", &g.pid, "tid", &g.tid, "uid", &uid,
				"start_ns", &start_ns) < 0)
			return -EINVAL;
		if (!i)
			continue;
		g.uid = (uid_t)uid;
		g.start_ns = (__u64)start_ns;
		err = load_name(&g.command, group, "command") |
		      load_name(&g.thread, group, "thread") |
		      load_name(&g.cgroup, group, "cgroup") | load_name(&g.unit, group, "unit") |
		      load_name(&g.host, group, "host");
		if (err | add_group(p, &g))
			return -EINVAL;
	}
	return 0;
}

/* Files of earlier versions have samples by thread instead of groups. */
static int load_threads(struct profile *p, const json_t *threads)
{
	json_t *thread;
	size_t i;

	json_array_foreach(threads, i, thread) {
		json_int_t samples;
		struct place sum = { 0 };
		struct group g = { 0 };
		int err;

		if (json_unpack(thread, "{si si sI}", "pid", &g.pid, "tid", &g.tid, "samples",
				&samples) < 0 ||
		    samples < 1 || !p->nobjects)
			return -EINVAL;
		err = load_name(&g.thread, thread, "name");
		if (!err && !g.thread)
			err = -EINVAL;
		err |= add_group(p, &g);
		sum.group = (__u32)p->ngroups - 1;
		sum.count = (__u64)samples;
		if (err || places_add(&p->sums, &sum) < 0)
			return -EINVAL;
	}
	return 0;
}

/* Describes a JSON file that is not a readable profile. */
static void describe(const json_t *root, char *why, size_t bytes)
{
	const char *schema = json_string_value(json_object_get(root, "schema"));

	if (schema && !strcmp(schema, PROFILE_SCHEMA))
		snprintf(why, bytes,
			 "it is a report that -f json has written, without the places of samples");
	else if (schema && !strncmp(schema, "profil", 6))
		snprintf(why, bytes, "it is JSON of another kind or version: %.64s", schema);
	else if (json_object_get(root, "$schema") && json_object_get(root, "shared"))
		snprintf(why, bytes, "it is a profile for speedscope");
	else if (json_object_get(root, "traceEvents"))
		snprintf(why, bytes, "it is a trace of Chrome's");
	else if (json_object_get(root, "meta") && json_object_get(root, "threads"))
		snprintf(why, bytes, "it is a profile for profiler.firefox.com");
	else
		snprintf(why, bytes, "it is JSON of something else");
}

static int load_root(struct profile *p, json_t *root)
{
	int err = load_head(p, root)
		      ?: load_objects(p, json_object_get(root, "objects"))
		      ?: load_groups(p, json_object_get(root, "groups"))
		      ?: load_threads(p, json_object_get(root, "threads"))
		      ?: load_counts(p, root)
		      ?: load_functions(p, json_object_get(root, "functions"))
		      ?: json_load_stacks(p, json_object_get(root, "stacks"));

	return err;
}

/* Reads @text as JSON, and says in @why why it is no profile, if it is none. */
static json_t *parse(const char *text, size_t n, char *why, size_t bytes)
{
	json_t *root;
	json_error_t error;
	char what[512];

	root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
	if (!root && json_error_code(&error) == json_error_premature_end_of_input)
		snprintf(what, sizeof(what), "it is cut off: JSON that ends in line %d",
			 error.line);
	else if (!root)
		snprintf(what, sizeof(what), "it is no JSON: line %d: %.160s", error.line,
			 error.text);
	else
		describe(root, what, sizeof(what));
	/* Both a schema and jansson's messages contain parts of the file. */
	sanitize(why, bytes, what);
	return root;
}

int json_load(struct profile **out, const char *text, size_t n, char *why, size_t bytes)
{
	__cleanup(profile_freep) struct profile *p = profile_new();
	json_auto_t *root = NULL;
	int err;

	if (!p)
		return -ENOMEM;
	root = parse(text, n, why, bytes);
	if (!root || !json_object_get(root, "places"))
		return -EINVAL;
	err = load_root(p, root);
	if (err == -EINVAL)
		snprintf(why, bytes, "it is a damaged profile, or one of another version");
	if (err < 0)
		return err;
	profile_sort_functions(p);
	*out = steal(p);
	return 0;
}
