/* perf.c - a perf.data file: the input of perf report and of the tools that read perf's samples */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "format.h"
#include "perf_mappings.h"
#include "profile/each_stack.h"
#include "profile/stack_ends.h"
#include "protobuf.h"

/*
 * The layout is that of perf's own Documentation/perf.data-file-format.txt: a header, the event,
 * the records, and sections of text behind these.
 *
 * A record is written for each place or stack; its period is what all its samples stand for, so the
 * sum of the periods, which perf calls the event count, is that of the profile. A profile's samples
 * have no order: their times follow each other as the sum of the periods does. A mapping is
 * written before the first sample of a process in it.
 */

/* A process whose id the profile does not have. */
#define PID_UNKNOWN 0x40000000

/* The longest stack that a record of 64 KiB holds, with what else is in it. */
#define FRAMES_MAX 8000

#define SAMPLE_TYPE (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD)

enum feature {
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_ARCH = 6,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
};
#define FEATURES                                                                       \
	(1ull << FEATURE_HOSTNAME | 1ull << FEATURE_OSRELEASE | 1ull << FEATURE_ARCH | \
	 1ull << FEATURE_CMDLINE | 1ull << FEATURE_EVENT_DESC)
#define NFEATURES 5

struct section {
	__u64 offset;
	__u64 bytes;
};

struct file_header {
	char magic[8];
	__u64 bytes;
	__u64 attr_bytes;
	struct section attrs;
	struct section data;
	struct section event_types;
	__u64 features[4];
};

struct attr_section {
	struct perf_event_attr attr;
	struct section ids;
};

struct ids {
	__u32 pid;
	__u32 tid;
	__u64 time;
};

struct mmap2 {
	struct perf_event_header head;
	__u32 pid, tid;
	__u64 start, bytes, offset;
	__u8 build_id_bytes, zero[3], build_id[20];
	__u32 prot, flags;
};

struct writer {
	const struct profile *profile;
	struct perf_mappings mappings;
	struct message data;
	struct perf_event_attr attr;
	__u64 period; /* of one sample */
	__u32 group;  /* of the samples that are written, + 1; 0: none yet */
	struct ids now;
};

static void put(struct writer *w, const void *bytes, size_t n)
{
	fwrite(bytes, 1, n, w->data.f);
}

/* Writes @text with a NUL, in a multiple of @align bytes. */
static void put_text(FILE *out, const char *text, size_t bytes)
{
	static const char zero[64];
	size_t n = strlen(text);

	fwrite(text, 1, n, out);
	fwrite(zero, 1, bytes - n, out);
}

static size_t padded(const char *text, size_t align)
{
	return (strlen(text) / align + 1) * align;
}

static void build_id(struct mmap2 *m, const char *hex)
{
	size_t n = strlen(hex) / 2;
	unsigned int byte;

	if (!n || n > sizeof(m->build_id))
		return;
	for (size_t i = 0; i < n && sscanf(hex + 2 * i, "%2x", &byte) == 1; i++)
		m->build_id[i] = (__u8)byte;
	m->build_id_bytes = (__u8)n;
	m->head.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
}

static void put_mapping(struct writer *w, const struct perf_mapping *map, bool kernel)
{
	const char *name = map->name	 ? map->name
			   : kernel	 ? "[kernel.kallsyms]_text"
			   : map->object ? map->object->path
					 : "";
	struct mmap2 m = { .head.type = PERF_RECORD_MMAP2,
			   .head.misc = kernel ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER,
			   .pid = kernel ? (__u32)-1 : w->now.pid,
			   .tid = kernel ? 0 : w->now.pid,
			   .start = map->start,
			   .bytes = map->end - map->start,
			   .offset = map->offset,
			   .prot = 5, /* PROT_READ | PROT_EXEC */
			   .flags = 2 /* MAP_PRIVATE */ };
	char path[4096];

	/* A name without a file must not be that of one. */
	snprintf(path, sizeof(path), map->name && *name != '[' ? "[%s]" : "%s", name);
	if (map->object)
		build_id(&m, map->object->build_id);
	m.head.size = (__u16)(sizeof(m) + padded(path, 8) + sizeof(w->now));
	put(w, &m, sizeof(m));
	put_text(w->data.f, path, padded(path, 8));
	put(w, &w->now, sizeof(w->now));
}

/*
 * Writes the mapping of @address, unless the process has it. Returns whether it is the kernel's. A
 * function that is a mapping of its own is one row of perf's: all of it gets the same address.
 */
static bool need_mapping(struct writer *w, __u64 *address)
{
	struct perf_mapping *map = perf_mapping_of(&w->mappings, *address);
	bool kernel = map && map->object && map->object->kind == OBJECT_KERNEL;

	if (map && map->used != w->group && !(kernel && map->used)) {
		put_mapping(w, map, kernel);
		map->used = w->group;
	}
	if (map && map->name)
		*address = map->start;
	return kernel;
}

static void put_comm(struct writer *w, const char *name)
{
	struct {
		struct perf_event_header head;
		__u32 pid, tid;
	} comm = { .head.type = PERF_RECORD_COMM, .pid = w->now.pid, .tid = w->now.tid };
	char text[64];

	snprintf(text, sizeof(text), "%s", name);
	comm.head.size = (__u16)(sizeof(comm) + padded(text, 8) + sizeof(w->now));
	put(w, &comm, sizeof(comm));
	put_text(w->data.f, text, padded(text, 8));
	put(w, &w->now, sizeof(w->now));
}

/* Begins the samples of @group. */
static void enter_group(struct writer *w, __u32 group)
{
	const struct profile *p = w->profile;
	const struct group *g = group && group < p->ngroups ? &p->groups[group] : NULL;
	pid_t pid = g ? g->pid : p->pid;
	char program[256];

	if (w->group == group + 1)
		return;
	w->group = group + 1;
	w->now.pid = pid > 0 ? (__u32)pid : PID_UNKNOWN + group;
	w->now.tid = g && g->tid > 0 ? (__u32)g->tid : w->now.pid;
	if (!g || !*g->command)
		put_comm(w, profile_base_name(profile_program(program, sizeof(program), p)));
	else
		put_comm(w, g->thread ? g->thread : g->command);
}

/* Writes a sample at @n addresses, innermost first, which can change. */
static int put_sample(struct writer *w, __u64 *address, size_t n, __u64 samples)
{
	struct {
		struct perf_event_header head;
		__u64 ip;
		struct ids ids;
		__u64 period;
	} s = { .head.type = PERF_RECORD_SAMPLE,
		.head.misc = PERF_RECORD_MISC_USER,
		.period = samples * w->period };
	__cleanup(freep) __u64 *chain = calloc(2 * n + 1, sizeof(*chain));
	__u64 length = 0;
	bool was = false;

	if (!chain)
		return -ENOMEM;
	if (n > FRAMES_MAX / 2)
		n = FRAMES_MAX / 2;
	for (size_t i = 0; i < n; i++) {
		bool kernel = need_mapping(w, &address[i]);

		if (!i && kernel)
			s.head.misc = PERF_RECORD_MISC_KERNEL;
		if (!i || kernel != was)
			chain[length++] = kernel ? PERF_CONTEXT_KERNEL : PERF_CONTEXT_USER;
		chain[length++] = address[i];
		was = kernel;
	}
	w->now.time += s.period;
	s.ip = address[0];
	s.ids = w->now;
	s.head.size = sizeof(s);
	if (w->attr.sample_type & PERF_SAMPLE_CALLCHAIN)
		s.head.size = (__u16)(sizeof(s) + (length + 1) * sizeof(__u64));
	put(w, &s, sizeof(s));
	if (w->attr.sample_type & PERF_SAMPLE_CALLCHAIN) {
		put(w, &length, sizeof(length));
		put(w, chain, length * sizeof(*chain));
	}
	return 0;
}

static int put_stack(void *arg, const struct stack *s)
{
	struct writer *w = arg;
	const struct call_tree *t = &w->profile->calls;
	__cleanup(freep) __u64 *address = calloc(s->n + 1, sizeof(*address));
	size_t n = 0;

	if (!address)
		return -ENOMEM;
	for (size_t i = 0; i < s->n; i++) {
		const struct call_node *node = &t->node[s->node[i]];

		/* The address of a caller is in its call, not the return address behind it. */
		if (s->node[i] < CALL_ROOTS)
			address[n] = perf_frame_address(&w->mappings, s->frame[i]);
		else
			address[n] = perf_address(&w->mappings, node->object,
						  node->offset - (n && node->offset));
		n++;
		while (s->node[i] >= CALL_ROOTS && call_tree_is_inlined(t, s->node[i]))
			i++; /* at the same address */
	}
	return put_sample(w, address, n, s->samples);
}

static int by_group(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int put_nowhere(struct writer *w, enum stack_without what, __u64 samples)
{
	__u64 address = perf_frame_address(&w->mappings, stack_frame_without(w->profile, what));

	return samples ? put_sample(w, &address, 1, samples) : 0;
}

static int put_places(struct writer *w)
{
	const struct profile *p = w->profile;
	__cleanup(freep) struct place *place = places_sorted(&p->places);
	int err = place ? 0 : -ENOMEM;

	if (place && p->places.n)
		qsort(place, p->places.n, sizeof(*place), by_group);
	for (size_t i = 0; i < p->places.n && !err; i++) {
		__u64 address = perf_address(&w->mappings, place[i].object, place[i].offset);

		enter_group(w, place[i].group);
		err = put_sample(w, &address, 1, place[i].count);
	}
	enter_group(w, 0);
	err = err ?: put_nowhere(w, STACK_UNMATCHED, p->unmatched);
	return err ? err : put_nowhere(w, STACK_LOST, p->lost);
}

static int put_records(struct writer *w)
{
	enter_group(w, 0);
	return has_stacks(w->profile) ? each_stack(w->profile, put_stack, w) : put_places(w);
}

static void describe_event(struct writer *w)
{
	const struct profile *p = w->profile;

	w->period = p->event && p->period ? p->period : p->event ? 1 : p->tick_ns;
	w->attr = (struct perf_event_attr){ .type = PERF_TYPE_SOFTWARE,
					    .size = sizeof(w->attr),
					    .config = PERF_COUNT_SW_CPU_CLOCK,
					    .sample_period = w->period,
					    .sample_type = SAMPLE_TYPE,
					    .mmap = 1,
					    .mmap2 = 1,
					    .comm = 1,
					    .sample_id_all = 1 };
	w->attr.build_id = 1;
	if (has_stacks(p))
		w->attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
}

/* Writes a text with its length before it. */
static void put_string(FILE *out, const char *text)
{
	__u32 bytes = (__u32)padded(text, 64);

	fwrite(&bytes, sizeof(bytes), 1, out);
	put_text(out, text, bytes);
}

static void put_event(FILE *out, const struct writer *w)
{
	const char *event = w->profile->event;
	const __u32 head[] = { 1, sizeof(w->attr) }, ids = 0;

	fwrite(head, sizeof(head), 1, out);
	fwrite(&w->attr, sizeof(w->attr), 1, out);
	fwrite(&ids, sizeof(ids), 1, out);
	put_string(out, event ? event : "cpu-clock");
}

/* Writes the texts behind the records, which end at @at: a table of sections, then these. */
static int put_features(FILE *out, const struct writer *w, __u64 at)
{
	const struct profile *p = w->profile;
	const char *text[] = { p->host.name, p->host.kernel, p->host.architecture };
	const __u32 words = 1;
	struct section section[NFEATURES];
	struct message m = { 0 };
	int err = message_init(&m);

	at += sizeof(section);
	for (size_t i = 0; !err && i < NFEATURES; i++) {
		section[i].offset = at + (__u64)ftell(m.f);
		if (i < 3)
			put_string(m.f, text[i]);
		else if (i == 3) {
			fwrite(&words, sizeof(words), 1, m.f);
			put_string(m.f, p->command);
		} else
			put_event(m.f, w);
		section[i].bytes = at + (__u64)ftell(m.f) - section[i].offset;
	}
	if (!err && (fflush(m.f) || ferror(m.f)))
		err = -ENOMEM;
	if (!err) {
		fwrite(section, sizeof(section), 1, out);
		fwrite(m.bytes, 1, m.n, out);
	}
	message_fini(&m);
	return err;
}

static int put_file(FILE *out, struct writer *w)
{
	struct attr_section attr = { .attr = w->attr };
	struct file_header h = { .bytes = sizeof(h),
				 .attr_bytes = sizeof(attr),
				 .attrs = { sizeof(h), sizeof(attr) },
				 .data = { sizeof(h) + sizeof(attr), 0 },
				 .features = { FEATURES } };

	memcpy(h.magic, "PERFILE2", sizeof(h.magic));
	if (fflush(w->data.f) || ferror(w->data.f))
		return -ENOMEM;
	h.data.bytes = w->data.n;
	fwrite(&h, sizeof(h), 1, out);
	fwrite(&attr, sizeof(attr), 1, out);
	fwrite(w->data.bytes, 1, w->data.n, out);
	return put_features(out, w, h.data.offset + h.data.bytes);
}

static void writer_fini(struct writer *w)
{
	perf_mappings_fini(&w->mappings);
	message_fini(&w->data);
}

int perf_write(FILE *out, const struct profile *p)
{
	__cleanup(writer_fini) struct writer w = { .profile = p };

	describe_event(&w);
	return message_init(&w.data) ?: perf_mappings_init(&w.mappings, p) ?: put_records(&w)
		?: put_file(out, &w);
}
