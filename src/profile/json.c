/* json.c - writes and reads profiles as JSON: profilctl's own files, and reports for programs */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "confidence.h"
#include "stack_ends.h"
#include "json.h"
#include "json_name.h"
#include "json_interpreted.h"
#include "json_stacks.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "outcomes.h"

/* Four decimal places, finer than any share of a sample. */
static double rounded(double percent)
{
	return (double)(long long)(percent * 10000 + 0.5) / 10000;
}

/* Appends @item to @all, taking ownership of both. Returns @all, or NULL if either is NULL. */
static json_t *append(json_t *all, json_t *item)
{
	if (json_array_append_new(all, item) == 0)
		return all;
	json_decref(all);
	return NULL;
}

/* The samples of each time slice. */
static json_t *slices_of(const struct profile *p, const __u64 *slices)
{
	json_t *all = json_array();

	for (size_t i = 0; i < p->nslices; i++)
		all = append(all, json_integer((json_int_t)slices[i]));
	return all;
}

static json_t *function_of(const struct profile *p, const struct function *f)
{
	double percent = profile_percent(p, f->samples);
	struct interval i = profile_is_off_cpu(p) ? (struct interval){ 0, 100 }
						  : confidence_interval(f->samples, p->total);

	json_t *j = json_pack("{so so sI sI sf s[ff] sI sI sb}", "name", jsonname_of(p, f),
			      "object", jsonname(p->objects[f->object].path), "object_index",
			      (json_int_t)f->object, "samples", (json_int_t)f->samples, "percent",
			      rounded(percent), "interval", rounded(i.low), rounded(i.high),
			      "offset", (json_int_t)f->offset, "size", (json_int_t)f->size, "named",
			      f->name != NULL);

	if (f->slices && json_object_set_new(j, "slices", slices_of(p, f->slices)) < 0) {
		json_decref(j);
		return NULL;
	}
	return j;
}

static json_t *name_or_null(const char *name)
{
	return name ? jsonname(name) : json_null();
}

/* What ran; group 0 is for samples without a group. */
static json_t *groups_of(const struct profile *p)
{
	__cleanup(freep) __u64 *samples = profile_group_samples(p);
	json_t *all;

	if (!samples)
		return NULL;
	all = json_array();
	for (size_t i = 0; i < p->ngroups; i++) {
		const struct group *g = &p->groups[i];

		all = append(all, json_pack("{so si si sI sI so so so so* sI}", "command",
					    jsonname(g->command), "pid", (int)g->pid, "tid",
					    (int)g->tid, "uid", (json_int_t)g->uid, "start_ns",
					    (json_int_t)g->start_ns, "thread",
					    name_or_null(g->thread), "cgroup",
					    name_or_null(g->cgroup), "unit", name_or_null(g->unit),
					    "host", g->host ? jsonname(g->host) : NULL, "samples",
					    (json_int_t)samples[i]));
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

/* The bytes, in hex, of a path that is not UTF-8. */
static json_t *hex_of(const char *s)
{
	size_t n = strlen(s);
	__cleanup(freep) char *hex = malloc(2 * n + 1);

	if (!hex)
		return NULL;
	hex_write(hex, 2 * n + 1, s, n);
	return json_string(hex);
}

static json_t *segments_of(const struct segments *s)
{
	json_t *all = json_array();

	for (size_t i = 0; s->segment && i < s->n; i++) {
		const struct segment *g = &s->segment[i];

		all = append(all, json_pack("[III]", (json_int_t)g->offset, (json_int_t)g->bytes,
					    (json_int_t)g->vaddr));
	}
	return all;
}

/* The kernel's load address is omitted: only CAP_SYSLOG gives access to it. */
static json_t *object_of(const struct profile *p, __u32 index)
{
	const struct object *o = &p->objects[index];
	const struct segment *first = o->segments.n ? o->segments.segment : NULL;
	json_int_t vaddr = first ? (json_int_t)(first->vaddr - first->offset) : 0;
	json_t *j = json_pack("{so ss sI so sb si}", "path", jsonname(o->path), "build_id",
			      o->build_id, "vaddr", vaddr, "segments", segments_of(&o->segments),
			      "program", o->program, "pid", (int)o->pid);

	int err = 0;

	if (o->file_bytes) {
		err |= json_object_set_new(j, "file_bytes",
					   json_integer((json_int_t)o->file_bytes));
		err |= json_object_set_new(j, "file_mtime_ns", json_integer(o->file_mtime_ns));
	}
	if (!utf8_is_valid(o->path))
		err |= json_object_set_new(j, "path_hex", hex_of(o->path));
	if (*o->unnamed)
		err |= json_object_set_new(j, "unnamed", json_string(o->unnamed));
	if (o->jitdump)
		err |= json_object_set_new(j, "jitdump", jsonname(o->jitdump));
	if (o->host)
		err |= json_object_set_new(j, "host", jsonname(o->host));
	if (o->interpreted)
		err |= json_object_set_new(j, "interpreted", json_interpreted(p, index));
	if (!err)
		return j;
	json_decref(j);
	return NULL;
}

static json_t *objects_of(const struct profile *p)
{
	json_t *all = json_array();

	for (__u32 i = 0; i < p->nobjects; i++)
		all = append(all, object_of(p, i));
	return all;
}

static json_t *places_of(const struct places *t)
{
	__cleanup(freep) struct place *place = places_sorted(t);
	json_t *all = place ? json_array() : NULL;

	for (size_t i = 0; all && i < t->n; i++) {
		json_t *one = json_pack("[IIII]", (json_int_t)place[i].object,
					(json_int_t)place[i].offset, (json_int_t)place[i].width,
					(json_int_t)place[i].count);

		if (place[i].group)
			one = append(one, json_integer((json_int_t)place[i].group));
		all = append(all, one);
	}
	return all;
}

/*
 * As in a shell, the exit status, or 128 + signal; null: the command still ran, or profilctl did
 * not start it.
 */
static json_t *command_status(const struct profile *p)
{
	if (p->end == PROFILE_RUNS_ON)
		return json_null();
	return json_integer(p->end == PROFILE_KILLED ? 128 + p->end_code : p->end_code);
}

static json_t *samples_of(const struct profile *p)
{
	json_t *samples =
		json_pack("{sI sI sI sI sI}", "total", (json_int_t)p->total, "binned",
			  (json_int_t)p->binned, "unmatched", (json_int_t)p->unmatched, "lost",
			  (json_int_t)p->lost, "kernel", (json_int_t)profile_kernel_samples(p));

	for (size_t i = 0; i < OUTCOMES; i++)
		json_object_set_new(samples, outcomes[i].name,
				    json_integer((json_int_t)*outcome_of(p, &outcomes[i])));
	return samples;
}

static json_t *head(const struct profile *p)
{
	return json_pack("{ss so si sI so sI sI sI sI so so so}", "schema", PROFILE_SCHEMA,
			 "command", jsonname(p->command), "pid", (int)p->pid, "started",
			 (json_int_t)p->started, "command_status", command_status(p), "tick_ns",
			 (json_int_t)p->tick_ns, "duration_ns", (json_int_t)p->duration_ns,
			 "cpu_ns", (json_int_t)p->cpu_ns, "processes", (json_int_t)p->processes,
			 "samples", samples_of(p), "functions", functions_of(p), "objects",
			 objects_of(p));
}

static json_t *host_of(const struct host_identity *h)
{
	return json_pack("{so so so so}", "name", jsonname(h->name), "kernel", jsonname(h->kernel),
			 "architecture", jsonname(h->architecture), "boot_id",
			 jsonname(h->boot_id));
}

/* Adds the parts that only some profiles have. */
static int parts(json_t *root, const struct profile *p)
{
	int err = 0;

	if (*p->host.name || *p->host.kernel)
		err |= json_object_set_new(root, "host", host_of(&p->host));
	if (p->started_boot_ns)
		err |= json_object_set_new(root, "started_boot_ns",
					   json_integer((json_int_t)p->started_boot_ns));

	if (p->event)
		err |= json_object_set_new(root, "event", jsonname(p->event)) |
		       json_object_set_new(root, "period", json_integer((json_int_t)p->period));
	if (p->nslices)
		err |= json_object_set_new(root, "slice_ns", json_integer((json_int_t)p->slice_ns));
	if (p->ngroups)
		err |= json_object_set_new(root, "groups", groups_of(p));
	return err;
}

int json_write(FILE *out, const struct profile *p, bool places)
{
	json_auto_t *root = head(p);
	int err = parts(root, p);

	if (places)
		err |= json_object_set_new(root, "places", places_of(&p->places));
	if (places && p->folded.n)
		err |= json_object_set_new(root, "folded", places_of(&p->folded));
	if (places && p->sums.n)
		err |= json_object_set_new(root, "sums", places_of(&p->sums));
	if (has_stacks(p))
		err |= json_object_set_new(root, "stacks", json_stacks(p));
	if (!root || err)
		return -ENOMEM;
	if (json_dumpf(root, out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(7)) < 0)
		return -EIO;
	fputc('\n', out);
	return 0;
}
