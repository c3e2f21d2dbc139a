/* follow.c - the processes of a session: what they have mapped, and where their ticks go */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/layout.h"
#include "core/scope.h"

#include "follow.h"
#include "image.h"
#include "mapped.h"
#include "maps.h"
#include "now.h"
#include "threads.h"

/* A process that shows fewer ticks costs no counters; each further image takes twice as many. */
#define FOLLOW_PATIENCE 16
#define FOLLOW_PATIENCE_MAX (1u << 20)
/* A pc that is in no mapping makes us read them again, but not more often. */
#define FOLLOW_REREAD_NS 20000000u
#define FOLLOW_SLOTS 256

struct process {
	struct process *next;
	__u32 tgid; /* as the daemon calls it, and all but the first process's pid */
	pid_t pid;
	struct maps maps;      /* as last read */
	struct image *current; /* that the kernel counts in, as far as we know; NULL: none */
	struct image *former; /* that it counted in before: a tick under way may still land there */
	unsigned int patience;
	unsigned int waiting; /* ticks since then that an image would have counted */
	__u16 execs;	      /* as its last event said */
	bool execed;	      /* so the first process's mappings say nothing of it */
	bool gone;
	__u64 reread_ns; /* not before */
};

struct follow {
	struct reader *reader;
	struct profile *profile;
	struct process *processes[FOLLOW_SLOTS];
	struct process *first;
	size_t nimages; /* of all processes */
	size_t others;	/* that share the kernel's memory */
	bool stopped;
	bool threads; /* are kept apart, which no counter does */
	__u64 raw;
	__u64 unmatched;
};

static struct process **place_of(struct follow *f, __u32 tgid)
{
	struct process **p = &f->processes[tgid % FOLLOW_SLOTS];

	while (*p && (*p)->tgid != tgid)
		p = &(*p)->next;
	return p;
}

static struct process *process_add(struct follow *f, __u32 tgid, __u16 execs)
{
	struct process **slot = &f->processes[tgid % FOLLOW_SLOTS], *first = *slot;

	*slot = calloc(1, sizeof(**slot));
	if (!*slot) {
		*slot = first;
		return NULL;
	}
	**slot = (struct process){ .next = first,
				   .tgid = tgid,
				   .pid = (pid_t)tgid,
				   .execs = execs,
				   .patience = FOLLOW_PATIENCE };
	return *slot;
}

/* Adds what *@image holds to the profile, and lets go of it. */
static int settle(struct follow *f, struct image **image)
{
	int err;

	if (!*image)
		return 0;
	err = image_add(*image, f->profile);
	image_close(steal(*image));
	f->nimages--;
	return err;
}

/* The kernel counts elsewhere from now on. No tick has been under way since the time before. */
static int retire(struct follow *f, struct process *p)
{
	int err = settle(f, &p->former);

	p->former = steal(p->current);
	return err;
}

static int settle_all(struct follow *f, struct process *p)
{
	int err = retire(f, p);

	return err ? err : settle(f, &p->former);
}

static void process_free(struct process *p)
{
	image_close(p->current);
	image_close(p->former);
	maps_fini(&p->maps);
	free(p);
}

/* Reads the mappings again; those of a process that has gone stay as they were. */
static int reread(struct follow *f, struct process *p)
{
	struct maps maps;
	int err;

	if (p->gone || now_ns() < p->reread_ns)
		return 0;
	err = maps_read(&maps, p->pid);
	if (err < 0)
		return err == -ENOMEM ? err : 0;
	err = mapped_objects(f->profile, p->pid, &maps);
	if (err < 0 || !maps.n) {
		maps_fini(&maps);
		return err;
	}
	maps_fini(&p->maps);
	p->maps = maps;
	return 0;
}

/*
 * A child that has gone before we looked had its parent's memory, if it never exec'd: most are
 * children of the first process.
 */
static int look_up_first(struct follow *f, const struct process *p, __u64 pc, struct mapping **out)
{
	int err;

	if (p->execed || p == f->first)
		return 0;
	*out = maps_find(&f->first->maps, pc);
	if (*out)
		return 0;
	err = reread(f, f->first);
	if (!err)
		*out = maps_find(&f->first->maps, pc);
	return err;
}

/* Finds the mapping that holds @pc; *@out is NULL where there is none. */
static int look_up(struct follow *f, struct process *p, __u64 pc, struct mapping **out)
{
	int err;

	*out = maps_find(&p->maps, pc);
	if (*out)
		return 0;
	err = reread(f, p);
	if (err < 0)
		return err;
	*out = maps_find(&p->maps, pc);
	if (!*out)
		p->reread_ns = now_ns() + FOLLOW_REREAD_NS;
	return *out ? 0 : look_up_first(f, p, pc, out);
}

/* What the next image may take: a session of a thousand processes has the memory of a few. */
static __u64 budget(const struct follow *f)
{
	__u64 counters = IMAGE_COUNTERS_MAX / (f->nimages + f->others + 1);

	return counters > IMAGE_COUNTERS_MIN ? counters : IMAGE_COUNTERS_MIN;
}

/* Has the kernel count @p from now on. A refusal is no error: its ticks go on coming one by one. */
static int give_image(struct follow *f, struct process *p)
{
	struct image *image;
	int err;

	if (f->stopped || f->threads || p->gone)
		return 0;
	err = reread(f, p);
	if (err < 0)
		return err;
	p->waiting = 0;
	p->patience = p->patience < FOLLOW_PATIENCE_MAX ? 2 * p->patience : p->patience;
	err = image_open(&image, f->reader, p->tgid, p->execs, &p->maps, budget(f));
	if (err < 0)
		return err == -ENODATA || err == -ETIMEDOUT || err == -EPROTO ? err : 0;
	err = retire(f, p);
	p->current = image;
	f->nimages++;
	return err;
}

static int on_raw(struct follow *f, struct process *p, __u64 pc, pid_t tid)
{
	struct mapping *m;
	int err = look_up(f, p, pc, &m);

	if (err < 0)
		return err;
	f->raw++;
	if (!m) {
		f->unmatched++;
		return 0;
	}
	err = profile_add_place(f->profile, m->object, mapped_offset(m, pc), 1, 1);
	if (!err && f->threads)
		err = threads_tick(f->profile, p->pid, tid);
	/* A tick that was under way when the image came says nothing of what that lacks. */
	if (err < 0 || (p->current && image_covers(p->current, pc)))
		return err;
	return ++p->waiting < p->patience ? 0 : give_image(f, p);
}

/*
 * The old memory has gone, and what we knew of it. The new mappings are read at once: many a
 * process is over before its first tick gets here.
 */
static int on_exec(struct follow *f, struct process *p, __u16 execs)
{
	int err = retire(f, p);

	p->execs = execs;
	p->execed = true;
	p->waiting = 0;
	p->patience = FOLLOW_PATIENCE;
	p->reread_ns = 0;
	maps_fini(&p->maps);
	if (!err && f->threads)
		err = threads_exec(f->profile, p->pid);
	return err ? err : reread(f, p);
}

/* No tick of it is to come. The first process's mappings may still speak for its children. */
static int on_end(struct follow *f, __u32 tgid)
{
	struct process **place = place_of(f, tgid), *p = *place;
	int err;

	if (!p)
		return 0;
	err = settle_all(f, p);
	p->gone = true;
	if (p != f->first) {
		*place = p->next;
		process_free(p);
	}
	return err;
}

int follow_open(struct follow **out, struct reader *r, struct profile *p, pid_t pid, __u32 tgid)
{
	struct follow *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->reader = r;
	f->profile = p;
	f->first = process_add(f, tgid, 0);
	if (!f->first) {
		free(f);
		return -ENOMEM;
	}
	f->first->pid = pid;
	err = reread(f, f->first);
	if (err < 0) {
		follow_close(f);
		return err;
	}
	*out = f;
	return 0;
}

void follow_close(struct follow *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < FOLLOW_SLOTS; i++) {
		while (f->processes[i]) {
			struct process *p = f->processes[i];

			f->processes[i] = p->next;
			process_free(p);
		}
	}
	free(f);
}

int follow_image(struct follow *f)
{
	return give_image(f, f->first);
}

void follow_threads(struct follow *f)
{
	f->threads = true;
}

void follow_among(struct follow *f, size_t n)
{
	f->others = n - 1;
}

int follow_events(struct follow *f)
{
	struct profil_msg_event event;
	int err = 0;

	while (!err && reader_next(f->reader, &event)) {
		struct process *p;

		if (event.kind == PROFIL_EVENT_EXIT) {
			err = on_end(f, event.tgid);
			continue;
		}
		p = *place_of(f, event.tgid);
		if (!p)
			p = process_add(f, event.tgid, event.execs);
		if (!p)
			return -ENOMEM;
		/* Where the event of an exec was lost, the next tick tells of it. */
		if (event.kind == PROFIL_EVENT_EXEC || event.execs != p->execs)
			err = on_exec(f, p, event.execs);
		if (!err && event.kind == PROFIL_EVENT_RAW)
			err = on_raw(f, p, event.pc, (pid_t)event.tid);
	}
	return err;
}

void follow_stop(struct follow *f)
{
	f->stopped = true;
}

bool follow_ended(const struct follow *f)
{
	return f->first->gone;
}

bool follow_alone(const struct follow *f)
{
	for (size_t i = 0; i < FOLLOW_SLOTS; i++) {
		for (const struct process *p = f->processes[i]; p; p = p->next) {
			if (p != f->first)
				return false;
		}
	}
	return true;
}

__u64 follow_counted(const struct follow *f)
{
	__u64 sum = 0;

	for (size_t i = 0; i < FOLLOW_SLOTS; i++) {
		for (const struct process *p = f->processes[i]; p; p = p->next) {
			sum += p->current ? image_sum(p->current) : 0;
			sum += p->former ? image_sum(p->former) : 0;
		}
	}
	return sum;
}

__u64 follow_unmatched(const struct follow *f)
{
	return f->unmatched;
}

__u64 follow_raw(const struct follow *f)
{
	return f->raw;
}

int follow_snapshot(const struct follow *f, struct profile *into)
{
	int err = 0;

	for (size_t i = 0; i < FOLLOW_SLOTS && !err; i++) {
		for (const struct process *p = f->processes[i]; p && !err; p = p->next) {
			if (p->current)
				err = image_add(p->current, into);
			if (p->former && !err)
				err = image_add(p->former, into);
		}
	}
	return err;
}

int follow_settle(struct follow *f)
{
	int err = 0;

	for (size_t i = 0; i < FOLLOW_SLOTS && !err; i++) {
		for (struct process *p = f->processes[i]; p && !err; p = p->next)
			err = settle_all(f, p);
	}
	return err;
}
