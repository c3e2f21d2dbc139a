/* table_slots.c - slots of the array of tables, changed by threads that wait for RCU */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/observers.h"
#include "base/jobs.h"
#include "profild/quota/quota.h"
#include "table_slots.h"

/*
 * A change to an array of maps takes effect at once, but then waits for an RCU grace period, 5 to
 * 16 ms, which the main thread must not do. Threads make the changes: one puts tables, one puts
 * unwind rules, eight remove both, because the kernel removes one at a time; those that wait at the
 * same time share a grace period. So a new table is not behind the removal of older ones, and
 * no sample of a new attachment is missed. Those that have come during a grace period are put
 * together: since Linux 6.8 they wait for one grace period, so that a table waits for two at most,
 * however many are put.
 *
 * A slot is charged to its user from table_slots_take() until it can be taken again: users that
 * come and go faster than grace periods pass use up their own slots, not those of others.
 *
 * The changes of one slot are made one after the other: while any is being made, the next wanted
 * one waits in the slot, and replaces another that waits there.
 */
#define BATCH 64
#define REMOVERS 8

/* What a slot is to hold; without a table: nothing. */
struct content {
	int table;
	int unwind; /* -1: no unwind rules */
};

static const struct content nothing = { -1, -1 };

struct slot {
	struct job removal;
	struct table_slots *slots;
	bool used;
	bool filled; /* it has had a content since it was taken */
	bool ending; /* given back: to be taken again when it is empty */
	struct charge charge;
	uint32_t changing; /* changes that are being made */
	int err;	   /* of the latest content */
	bool waits;	   /* @next is made when they are done */
	struct content next;
};

/* Maps for slots of one array. The job has @key, @fd and @err; others wait in @more. */
struct puts {
	struct job job;
	struct table_slots *slots;
	struct jobs *thread;
	int outer;
	uint32_t n; /* 0: no job is under way */
	__u32 key[PROFIL_MAX_OBSERVERS];
	int fd[PROFIL_MAX_OBSERVERS];
	int err[PROFIL_MAX_OBSERVERS];
	uint32_t nmore;
	struct {
		uint32_t slot;
		int fd;
	} more[PROFIL_MAX_OBSERVERS];
};

struct table_slots {
	struct puts tables;
	struct puts unwinds;
	struct jobs *removers;
	struct slot slot[PROFIL_MAX_OBSERVERS];
};

static bool is_there(int outer, uint32_t slot)
{
	__u32 id;

	return bpf_map_lookup_elem(outer, &slot, &id) == 0;
}

/* --- the threads ------------------------------------------------------------------------------ */

/* Puts maps @from to @to into their slots; continues after one that is refused. */
static void put_batch(struct puts *p, uint32_t from, uint32_t to)
{
	while (from < to) {
		__u32 count = to - from;

		if (bpf_map_update_batch(p->outer, &p->key[from], &p->fd[from], &count, NULL) == 0)
			return;
		if (count >= to - from) /* the kernel has not said how many it has put */
			count = 0;
		from += count;
		p->err[from++] = -errno;
	}
}

static void put_all(struct job *job)
{
	struct puts *p = (struct puts *)job;

	for (uint32_t i = 0; i < p->n; i += BATCH)
		put_batch(p, i, p->n - i < BATCH ? p->n : i + BATCH);
}

static void remove_maps(struct job *job)
{
	const struct slot *at = (const struct slot *)job;
	const struct table_slots *s = at->slots;
	uint32_t slot = (uint32_t)(at - s->slot);

	bpf_map_delete_elem(s->tables.outer, &slot);
	if (is_there(s->unwinds.outer, slot))
		bpf_map_delete_elem(s->unwinds.outer, &slot);
}

/* --- the main thread -------------------------------------------------------------------------- */

static void puts_begin(struct puts *p)
{
	for (p->n = 0; p->n < p->nmore; p->n++) {
		p->key[p->n] = p->more[p->n].slot;
		p->fd[p->n] = p->more[p->n].fd;
		p->err[p->n] = 0;
	}
	p->nmore = 0;
	if (p->n)
		jobs_submit(p->thread, &p->job);
}

static void puts_add(struct puts *p, uint32_t slot, int fd)
{
	p->slots->slot[slot].changing++;
	p->more[p->nmore].slot = slot;
	p->more[p->nmore++].fd = fd;
	if (!p->n)
		puts_begin(p);
}

/* The content's maps are closed when they are in the slot, or another content replaces them. */
static void set(struct table_slots *s, struct slot *at, struct content c)
{
	uint32_t slot = (uint32_t)(at - s->slot);

	if (at->changing) {
		if (at->waits) {
			closep(&at->next.table);
			closep(&at->next.unwind);
		}
		at->waits = true;
		at->next = c;
		return;
	}
	at->err = 0;
	if (c.unwind >= 0)
		puts_add(&s->unwinds, slot, c.unwind);
	if (c.table >= 0) {
		puts_add(&s->tables, slot, c.table);
	} else {
		at->changing++;
		jobs_submit(s->removers, &at->removal);
	}
}

static void free_slot(struct slot *at)
{
	at->used = at->filled = at->ending = false;
	charge_give(&at->charge);
}

/* Returns true if it is as it is to be. */
static bool change_done(struct slot *at, int err)
{
	if (err)
		at->err = err;
	if (--at->changing)
		return false;
	if (!at->waits)
		return true;
	at->waits = false;
	set(at->slots, at, at->next);
	return false;
}

static void puts_done(struct job *job)
{
	struct puts *p = (struct puts *)job;

	for (uint32_t i = 0; i < p->n; i++) {
		close(p->fd[i]);
		change_done(&p->slots->slot[p->key[i]], p->err[i]);
	}
	puts_begin(p);
}

static void removed(struct job *job)
{
	struct slot *at = (struct slot *)job;

	if (change_done(at, 0))
		free_slot(at);
}

static void finish(struct table_slots *s, bool wait)
{
	jobs_finish(s->tables.thread, wait);
	jobs_finish(s->unwinds.thread, wait);
	jobs_finish(s->removers, wait);
}

static int puts_open(struct puts *p, struct table_slots *s, int outer, sd_event *event)
{
	p->job = (struct job){ .run = put_all, .done = puts_done };
	p->slots = s;
	p->outer = outer;
	return jobs_open(&p->thread, event, 1);
}

int table_slots_open(struct table_slots **out, int outer, int unwind, bool keeps_first,
		     sd_event *event)
{
	struct table_slots *s = calloc(1, sizeof(*s));
	int err = (s ? puts_open(&s->tables, s, outer, event) : -ENOMEM)
		      ?: puts_open(&s->unwinds, s, unwind, event)
		      ?: jobs_open(&s->removers, event, REMOVERS);

	if (err) {
		table_slots_close(s);
		return err;
	}
	for (uint32_t i = 0; i < PROFIL_MAX_OBSERVERS; i++) {
		s->slot[i].slots = s;
		s->slot[i].removal = (struct job){ .run = remove_maps, .done = removed };
		if ((keeps_first && i == 0) || !is_there(outer, i))
			continue;
		s->slot[i].used = s->slot[i].filled = true;
		table_slots_give(s, i);
	}
	*out = s;
	return 0;
}

static bool is_changing(const struct table_slots *s)
{
	for (uint32_t i = 0; i < PROFIL_MAX_OBSERVERS; i++) {
		if (s->slot[i].changing)
			return true;
	}
	return false;
}

/* Changes that have been asked for are made first: all tables are removed. */
struct table_slots *table_slots_close(struct table_slots *s)
{
	if (!s)
		return NULL;
	while (is_changing(s))
		finish(s, true);
	jobs_close(s->tables.thread);
	jobs_close(s->unwinds.thread);
	jobs_close(s->removers);
	for (uint32_t i = 0; i < PROFIL_MAX_OBSERVERS; i++)
		charge_give(&s->slot[i].charge);
	free(s);
	return NULL;
}

uint32_t table_slots_take_for_machine(struct table_slots *s)
{
	uint32_t slot = 0;

	finish(s, false);
	for (uint32_t i = 0; i < PROFIL_MACHINE_SLOTS; i++) {
		if (!s->slot[i].used) {
			slot = i;
			break;
		}
		if (s->slot[i].ending)
			slot = i;
	}
	s->slot[slot].used = true;
	s->slot[slot].ending = false;
	return slot;
}

static bool has_ending(const struct table_slots *s, const struct user *user)
{
	for (uint32_t i = PROFIL_MACHINE_SLOTS; i < PROFIL_MAX_OBSERVERS; i++) {
		if (s->slot[i].ending && s->slot[i].charge.user == user)
			return true;
	}
	return false;
}

int table_slots_take(struct table_slots *s, struct user *user, uint32_t *slot)
{
	int err;

	finish(s, false);
	for (uint32_t i = PROFIL_MACHINE_SLOTS; i < PROFIL_MAX_OBSERVERS; i++) {
		if (s->slot[i].used)
			continue;
		err = charge_take(&s->slot[i].charge, user, RES_TABLE_SLOTS, 1);
		if (err)
			return has_ending(s, user) ? -EDQUOT : err;
		s->slot[i].used = true;
		*slot = i;
		return 0;
	}
	return -EAGAIN;
}

int table_slots_put(struct table_slots *s, uint32_t slot, int table, int unwind)
{
	struct content c = nothing;

	c.table = fcntl(table, F_DUPFD_CLOEXEC, 0);
	if (unwind >= 0)
		c.unwind = fcntl(unwind, F_DUPFD_CLOEXEC, 0);
	if (c.table < 0 || (unwind >= 0 && c.unwind < 0)) {
		closep(&c.table);
		closep(&c.unwind);
		return -EMFILE;
	}
	s->slot[slot].filled = true;
	set(s, &s->slot[slot], c);
	return 0;
}

int table_slots_ready(const struct table_slots *s, uint32_t slot, bool unwind)
{
	if (s->slot[slot].err)
		return s->slot[slot].err;
	if (s->slot[slot].waits)
		return -EINPROGRESS;
	return is_there(s->tables.outer, slot) && (!unwind || is_there(s->unwinds.outer, slot))
		       ? 0
		       : -EINPROGRESS;
}

void table_slots_give(struct table_slots *s, uint32_t slot)
{
	struct slot *at = &s->slot[slot];

	at->ending = true;
	if (at->filled)
		set(s, at, nothing);
	else
		free_slot(at);
}
