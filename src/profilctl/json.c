/* json.c - a profile for programs, and as a file to keep */
#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/scope.h"

#include "interval.h"
#include "jsonname.h"
#include "output.h"

/* Four places behind the point: finer than any sample. */
static double rounded(double percent)
{
	return (double)(long long)(percent * 10000 + 0.5) / 10000;
}

/* @all with @item at its end, both of which it takes over; NULL where either was missing. */
static json_t *append(json_t *all, json_t *item)
{
	if (json_array_append_new(all, item) == 0)
		return all;
	json_decref(all);
	return NULL;
}

/* When it was hot: the samples of each slice. */
static json_t *slices_of(const struct profile *p, const __u64 *slices)
{
	json_t *all = json_array();

	for (size_t i = 0; i < p->nslices; i++)
		all = append(all, json_integer((json_int_t)slices[i]));
	return all;
}

/* Like places, but with the samples of each slice in the place of their sum. */
static json_t *bands_of(const struct profile *p)
{
	json_t *all = json_array();

	for (size_t i = 0; i < p->nbands; i++) {
		const struct band *b = &p->bands[i];

		all = append(all, json_pack("[IIIo]", (json_int_t)b->object, (json_int_t)b->offset,
					    (json_int_t)b->bytes, slices_of(p, b->slices)));
	}
	return all;
}

static json_t *function_of(const struct profile *p, const struct function *f)
{
	struct interval i = interval_of(f->samples, p->total);

	json_t *j =
		json_pack("{so so sI sf s[ff] sI sI sb sb}", "name", jsonname_of(p, f), "object",
			  jsonname(p->objects[f->object].path), "samples", (json_int_t)f->samples,
			  "percent", rounded(profile_percent(p, f->samples)), "interval",
			  rounded(i.low), rounded(i.high), "offset", (json_int_t)f->offset, "size",
			  (json_int_t)f->size, "named", f->name != NULL, "shared", f->shared);

	if (p->nslices && json_object_set_new(j, "slices", slices_of(p, f->slices)) < 0) {
		json_decref(j);
		return NULL;
	}
	return j;
}

static json_t *threads_of(const struct profile *p)
{
	json_t *all = json_array();

	for (size_t i = 0; i < p->nthreads; i++) {
		const struct thread *t = &p->threads[i];

		all = append(all, json_pack("{so si si sI}", "name", jsonname(t->name), "pid",
					    (int)t->pid, "tid", (int)t->tid, "samples",
					    (json_int_t)t->samples));
	}
	return all;
}

static json_t *functions_of(const struct profile *p)
{
	json_t *all = json_array();

	for (size_t i = 0; i < p->nfunctions; i++)
		all = append(all, function_of(p, &p->functions[i]));
	return all;
}

static json_t *objects_of(const struct profile *p)
{
	json_t *all = json_array();

	for (size_t i = 0; i < p->nobjects; i++) {
		const struct object *o = &p->objects[i];

		all = append(all, json_pack("{so ss sI sb}", "path", jsonname(o->path), "build_id",
					    o->build_id, "vaddr", (json_int_t)o->vaddr, "program",
					    o->program));
	}
	return all;
}

static json_t *places_of(const struct profile *p)
{
	__cleanup(freep) struct place *place = profile_sorted_places(p);
	json_t *all = place ? json_array() : NULL;

	for (size_t i = 0; all && i < p->nplaces; i++)
		all = append(all, json_pack("[IIII]", (json_int_t)place[i].object,
					    (json_int_t)place[i].offset, (json_int_t)place[i].width,
					    (json_int_t)place[i].count));
	return all;
}

/* As shells say it: an exit status, or 128 and the signal; null: it was not ours to wait for. */
static json_t *command_status(const struct profile *p)
{
	if (p->end == PROFILE_RUNS_ON)
		return json_null();
	return json_integer(p->end == PROFILE_KILLED ? 128 + p->end_code : p->end_code);
}

static json_t *head(const struct profile *p)
{
	return json_pack("{ss so si sI so sI sI sI s{sI sI sI sI sI} so so}", "schema",
			 PROFILE_SCHEMA, "command", jsonname(p->command), "pid", (int)p->pid,
			 "started", (json_int_t)p->started, "command_status", command_status(p),
			 "tick_ns", (json_int_t)p->tick_ns, "duration_ns",
			 (json_int_t)p->duration_ns, "cpu_ns", (json_int_t)p->cpu_ns, "samples",
			 "total", (json_int_t)p->total, "binned", (json_int_t)p->binned,
			 "unmatched", (json_int_t)p->unmatched, "lost", (json_int_t)p->lost,
			 "saturated", (json_int_t)p->saturated, "functions", functions_of(p),
			 "objects", objects_of(p));
}

int json_write(FILE *out, const struct profile *p, bool places)
{
	json_auto_t *root = head(p);
	int err = 0;

	if (p->nslices)
		err |= json_object_set_new(root, "slice_ns", json_integer((json_int_t)p->slice_ns));
	if (p->nbands)
		err |= json_object_set_new(root, "bands", bands_of(p));
	if (p->nthreads)
		err |= json_object_set_new(root, "threads", threads_of(p));
	if (places)
		err |= json_object_set_new(root, "places", places_of(p));
	if (!root || err)
		return -ENOMEM;
	if (json_dumpf(root, out, JSON_COMPACT | JSON_REAL_PRECISION(7)) < 0)
		return -EIO;
	fputc('\n', out);
	return 0;
}

static int load_objects(struct profile *p, const json_t *objects)
{
	const json_t *o;
	size_t i;

	json_array_foreach(objects, i, o)
	{
		const char *path = json_string_value(json_object_get(o, "path"));
		const char *build_id = json_string_value(json_object_get(o, "build_id"));
		json_int_t vaddr = 0;
		int program = 0;
		__u32 index;

		/* Those that an older version has kept lack these. */
		json_unpack((json_t *)o, "{s?I s?b}", "vaddr", &vaddr, "program", &program);
		if (!path || !build_id || strlen(build_id) >= PROFILE_BUILD_ID_MAX)
			return -EINVAL;
		if (profile_add_object(p, path, 0, 0, -1, &index) < 0)
			return -ENOMEM;
		strcpy(p->objects[index].build_id, build_id);
		p->objects[index].vaddr = (__u64)vaddr;
		p->objects[index].program = program;
	}
	return 0;
}

static int load_places(struct profile *p, const json_t *places)
{
	const json_t *place;
	size_t i;

	json_array_foreach(places, i, place)
	{
		json_int_t object, offset, width, count;
		int err;

		if (json_unpack((json_t *)place, "[IIII!]", &object, &offset, &width, &count) < 0 ||
		    object < 0 || (size_t)object >= p->nobjects || width < 1 ||
		    width > UINT32_MAX || count < 1 || (__u64)count > INT64_MAX - p->binned)
			return -EINVAL;
		err = profile_add_place(p, (__u32)object, (__u64)offset, (__u32)width,
					(__u64)count);
		if (err < 0)
			return err;
	}
	return 0;
}

/* All have as many, or none has any. The caller frees them. */
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
	json_array_foreach(slices, i, n)
	{
		if (!json_is_integer(n) || json_integer_value(n) < 0)
			return -EINVAL;
		samples[i] = (__u64)json_integer_value(n);
	}
	*out = steal(samples);
	return 0;
}

static int load_bands(struct profile *p, const json_t *bands)
{
	const json_t *band;
	size_t i;

	p->bands = calloc(json_array_size(bands) + 1, sizeof(*p->bands));
	if (!p->bands)
		return -ENOMEM;
	json_array_foreach(bands, i, band)
	{
		json_int_t object, offset, bytes;
		struct band *b = &p->bands[i];
		json_t *slices;
		int err;

		if (json_unpack((json_t *)band, "[IIIo!]", &object, &offset, &bytes, &slices) < 0 ||
		    object < 0 || (size_t)object >= p->nobjects || bytes < 1)
			return -EINVAL;
		*b = (struct band){ (__u64)offset, (__u64)bytes, (__u32)object, NULL };
		p->nbands++;
		err = load_slices(&b->slices, p, slices);
		if (err < 0 || !b->slices)
			return err ? err : -EINVAL;
	}
	return 0;
}

static int load_function(struct profile *p, json_t *function)
{
	const char *name, *object;
	json_int_t samples, offset, size;
	struct function f = { 0 };
	int named, shared = 0, err;

	if (json_unpack(function, "{ss ss sI sI sI sb s?b}", "name", &name, "object", &object,
			"samples", &samples, "offset", &offset, "size", &size, "named", &named,
			"shared", &shared) < 0 ||
	    samples < 1)
		return -EINVAL;
	while (f.object < p->nobjects && strcmp(p->objects[f.object].path, object) != 0)
		f.object++;
	if (f.object == p->nobjects)
		return -EINVAL;
	f.samples = (__u64)samples;
	f.offset = (__u64)offset;
	f.size = (__u64)size;
	f.shared = shared;
	err = load_slices(&f.slices, p, json_object_get(function, "slices"));
	if (err < 0)
		return err;
	f.name = named ? strdup(name) : NULL;
	if (!named || f.name)
		return profile_add_function(p, &f);
	free(f.slices);
	return -ENOMEM;
}

static int load_head(struct profile *p, json_t *root)
{
	json_int_t slice = 0, started, tick, duration, cpu, total, unmatched, lost, saturated = 0;
	const char *schema, *command;
	json_t *status;
	int pid;

	if (json_unpack(root, "{ss ss si sI so sI sI sI s{sI sI sI s?I} s?I}", "schema", &schema,
			"command", &command, "pid", &pid, "started", &started, "command_status",
			&status, "tick_ns", &tick, "duration_ns", &duration, "cpu_ns", &cpu,
			"samples", "total", &total, "unmatched", &unmatched, "lost", &lost,
			"saturated", &saturated, "slice_ns", &slice) < 0 ||
	    total < 0 || unmatched < 0 || lost < 0 || strcmp(schema, PROFILE_SCHEMA) != 0)
		return -EINVAL;
	p->command = strdup(command);
	p->pid = pid;
	p->started = started;
	p->tick_ns = (__u64)tick;
	p->duration_ns = (__u64)duration;
	p->cpu_ns = (__u64)cpu;
	p->total = (__u64)total;
	p->unmatched = (__u64)unmatched;
	p->lost = (__u64)lost;
	p->saturated = (__u64)saturated;
	p->slice_ns = (__u64)slice;
	if (json_is_integer(status)) {
		p->end_code = (int)json_integer_value(status);
		p->end = p->end_code > 128 ? PROFILE_KILLED : PROFILE_EXITED;
		p->end_code -= p->end_code > 128 ? 128 : 0;
	}
	return p->command ? 0 : -ENOMEM;
}

/* Without a sum that wraps around. */
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
	json_array_foreach(functions, i, f)
	{
		int err = load_function(p, f);

		if (err < 0)
			return err;
	}
	return adds_up(p) ? 0 : -EINVAL;
}

static int load_threads(struct profile *p, const json_t *threads)
{
	json_t *thread;
	size_t i;

	json_array_foreach(threads, i, thread)
	{
		json_int_t samples;
		const char *name;
		struct thread t;
		int err;

		if (json_unpack(thread, "{ss si si sI}", "name", &name, "pid", &t.pid, "tid",
				&t.tid, "samples", &samples) < 0 ||
		    samples < 1)
			return -EINVAL;
		t.samples = (__u64)samples;
		t.name = strdup(name);
		err = t.name ? profile_add_thread(p, &t) : -ENOMEM;
		if (err < 0)
			return err;
	}
	return 0;
}

int json_load(struct profile **out, FILE *in, char *why, size_t bytes)
{
	__cleanup(profile_freep) struct profile *p = profile_new();
	json_auto_t *root = NULL;
	json_error_t error;
	int err;

	if (!p)
		return -ENOMEM;
	root = json_loadf(in, JSON_REJECT_DUPLICATES, &error);
	if (!root) {
		snprintf(why, bytes, "line %d: %s", error.line, error.text);
		return -EINVAL;
	}
	snprintf(why, bytes, "it is no profile that profilctl has written, or of another version");
	if (!json_object_get(root, "places"))
		return -EINVAL;
	err = load_head(p, root);
	if (!err)
		err = load_objects(p, json_object_get(root, "objects"));
	if (!err)
		err = load_places(p, json_object_get(root, "places"));
	if (!err)
		err = load_functions(p, json_object_get(root, "functions"));
	if (!err)
		err = load_bands(p, json_object_get(root, "bands"));
	if (!err)
		err = load_threads(p, json_object_get(root, "threads"));
	if (err < 0)
		return err;
	profile_sort_functions(p);
	*out = steal(p);
	return 0;
}
