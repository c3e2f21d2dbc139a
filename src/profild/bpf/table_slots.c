/* table_slots.c - slots of the array of tables, changed by threads that wait for RCU */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/observers.h"
#include "base/thread.h"
#include "profild/quota/quota.h"
#include "table_slots.h"

/*
 * A change to an array of maps takes effect at once, but then waits for an RCU grace period, 5 to
 * 16 ms, which the main thread must not do. Threads make the changes: one puts tables, one puts
 * unwind rules, eight remove both, because the kernel removes one at a time; those that wait at the
 * same time share a grace period. So a new table is not behind the removal of older ones, and
 * no sample of a new attachment is missed. Each thread takes its changes from a queue, makes them
 * in order, and appends each to those that are done. Those that have come during a grace period are
 * put together: since Linux 6.8 they wait for one grace period, so that a table waits for two at
 * most, however many are put.
 *
 * A slot is charged to its user from table_slots_take() until it can be taken again: users that
 * come and go faster than grace periods pass use up their own slots, not those of others.
 *
 * The changes of one slot are made one after the other: while any is being made, the next wanted
 * one waits in the slot, and replaces another that waits there.
 */
enum lane { LANE_TABLE, LANE_UNWIND, LANE_REMOVE, LANES };

struct change {
	uint32_t slot;
	uint32_t lane;
	int fd;	 /* the map to put into the slot, then closed */
	int err; /* of the change, when it is done */
};

#define BATCH 64
#define REMOVERS 8
#define THREADS (LANES - 1 + REMOVERS)

#define MAX_CHANGING (2 * PROFIL_MAX_OBSERVERS) /* a table and unwind rules of each slot */

/* What a slot is to hold; without a table: nothing. */
struct content {
	int table;
	int unwind; /* -1: no unwind rules */
};

static const struct content nothing = { -1, -1 };

struct slot {
	bool used;
	bool filled; /* it has had a content since it was taken */
	bool ending; /* given back: to be taken again when it is empty */
	struct charge charge;
	uint32_t changing; /* threads that have a change of it */
	int err;	   /* of the latest content */
	bool waits;	   /* @next is made when they are done */
	struct content next;
};

/* Of changes: no slot has more than two at a time. Memory, because a system call may fail. */
struct queue {
	pthread_mutex_t mutex;
	pthread_cond_t more;
	bool ends; /* no more will come */
	uint32_t n;
	struct change change[MAX_CHANGING];
};

struct table_slots {
	int outer;
	int unwind;
	struct queue asked[LANES];
	struct slot slot[PROFIL_MAX_OBSERVERS];
	uint32_t changing; /* of all slots */
	struct lane_thread {
		struct table_slots *slots;
		enum lane lane;
		pthread_t thread;
		bool running;
	} thread[THREADS];
	struct queue done; /* which the main thread has not taken yet */
	int event;	   /* wakes it */
	sd_event_source *source;
};

static void queue_init(struct queue *q)
{
	pthread_mutex_init(&q->mutex, NULL);
	pthread_cond_init(&q->more, NULL);
}

static void queue_append(struct queue *q, const struct change *c, uint32_t n)
{
	pthread_mutex_lock(&q->mutex);
	for (uint32_t i = 0; i < n; i++)
		q->change[q->n++] = c[i];
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->mutex);
}

/* Takes up to @max changes; with @wait at least one, unless the queue has ended. */
static uint32_t queue_take(struct queue *q, struct change *c, uint32_t max, bool wait)
{
	uint32_t n;

	pthread_mutex_lock(&q->mutex);
	while (wait && !q->n && !q->ends)
		pthread_cond_wait(&q->more, &q->mutex);
	n = q->n < max ? q->n : max;
	memcpy(c, q->change, n * sizeof(*c));
	q->n -= n;
	memmove(q->change, &q->change[n], q->n * sizeof(*c));
	pthread_mutex_unlock(&q->mutex);
	return n;
}

static void queue_end(struct queue *q)
{
	pthread_mutex_lock(&q->mutex);
	q->ends = true;
	pthread_cond_broadcast(&q->more);
	pthread_mutex_unlock(&q->mutex);
}

/* Should the wake-up fail, the main thread takes the changes with the next ones. */
static void append_done(struct table_slots *s, const struct change *c, uint32_t n)
{
	queue_append(&s->done, c, n);
	eventfd_write(s->event, 1);
}

static bool is_there(int outer, uint32_t slot)
{
	__u32 id;

	return bpf_map_lookup_elem(outer, &slot, &id) == 0;
}

/* Puts @n maps into their slots and closes them. */
static void put(int outer, struct change *c, uint32_t n)
{
	__u32 key[BATCH];
	int fd[BATCH];

	for (uint32_t i = 0; i < n; i++) {
		key[i] = c[i].slot;
		fd[i] = c[i].fd;
	}
	for (uint32_t done = 0; done < n; done++) { /* again after one that is refused */
		__u32 count = n - done;

		if (bpf_map_update_batch(outer, &key[done], &fd[done], &count, NULL) == 0)
			break;
		if (count >= n - done) /* the kernel has not said how many it has put */
			count = 0;
		done += count;
		c[done].err = -errno;
	}
	for (uint32_t i = 0; i < n; i++)
		close(fd[i]);
}

static void remove_maps(const struct table_slots *s, uint32_t slot)
{
	bpf_map_delete_elem(s->outer, &slot);
	if (is_there(s->unwind, slot))
		bpf_map_delete_elem(s->unwind, &slot);
}

static void *make_changes(void *arg)
{
	const struct lane_thread *t = arg;
	struct table_slots *s = t->slots;
	struct change c[BATCH];
	uint32_t n;

	while ((n = queue_take(&s->asked[t->lane], c, t->lane == LANE_REMOVE ? 1 : BATCH, true))) {
		if (t->lane == LANE_REMOVE)
			remove_maps(s, c[0].slot);
		else
			put(t->lane == LANE_TABLE ? s->outer : s->unwind, c, n);
		append_done(s, c, n);
	}
	return NULL;
}

static void ask(struct table_slots *s, uint32_t slot, enum lane lane, int fd)
{
	const struct change c = { slot, lane, fd, 0 };

	s->slot[slot].changing++;
	s->changing++;
	queue_append(&s->asked[lane], &c, 1);
}

/* The content's maps are closed when they are in the slot, or another content replaces them. */
static void set(struct table_slots *s, uint32_t slot, struct content c)
{
	struct slot *at = &s->slot[slot];

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
		ask(s, slot, LANE_UNWIND, c.unwind);
	ask(s, slot, c.table >= 0 ? LANE_TABLE : LANE_REMOVE, c.table);
}

static void free_slot(struct slot *at)
{
	at->used = at->filled = at->ending = false;
	charge_give(&at->charge);
}

static void take_done(struct table_slots *s, const struct change *c)
{
	struct slot *at = &s->slot[c->slot];

	s->changing--;
	if (c->err)
		at->err = c->err;
	if (--at->changing)
		return;
	if (at->waits) {
		at->waits = false;
		set(s, c->slot, at->next);
	} else if (c->lane == LANE_REMOVE) {
		free_slot(at);
	}
}

static void take_all_done(struct table_slots *s, bool wait)
{
	struct change c[MAX_CHANGING];
	uint32_t n = queue_take(&s->done, c, MAX_CHANGING, wait);

	for (uint32_t i = 0; i < n; i++)
		take_done(s, &c[i]);
}

static int on_done(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	eventfd_t n;

	(void)source;
	(void)revents;
	eventfd_read(fd, &n);
	take_all_done(userdata, false);
	return 0;
}

static int start_threads(struct table_slots *s)
{
	for (int i = 0; i < THREADS; i++) {
		struct lane_thread *t = &s->thread[i];
		int err;

		*t = (struct lane_thread){ .slots = s,
					   .lane = i < LANE_REMOVE ? (enum lane)i : LANE_REMOVE };
		err = thread_start(&t->thread, make_changes, t);
		if (err)
			return err;
		t->running = true;
	}
	return 0;
}

int table_slots_open(struct table_slots **out, int outer, int unwind, bool keeps_first,
		     sd_event *event)
{
	struct table_slots *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	for (int lane = 0; lane < LANES; lane++)
		queue_init(&s->asked[lane]);
	queue_init(&s->done);
	s->outer = outer;
	s->unwind = unwind;
	s->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = s->event < 0 ? -errno : 0;
	if (!err)
		err = sd_event_add_io(event, &s->source, s->event, EPOLLIN, on_done, s);
	if (err >= 0)
		err = start_threads(s);
	if (err < 0) {
		table_slots_close(s);
		return err;
	}
	for (uint32_t i = keeps_first ? 1 : 0; i < PROFIL_MAX_OBSERVERS; i++) {
		if (is_there(s->outer, i)) {
			s->slot[i].used = s->slot[i].filled = true;
			table_slots_give(s, i);
		}
	}
	*out = s;
	return 0;
}

/* Changes that have been asked for are made first: all tables are removed. */
struct table_slots *table_slots_close(struct table_slots *s)
{
	if (!s)
		return NULL;
	while (s->changing)
		take_all_done(s, true);
	for (int lane = 0; lane < LANES; lane++)
		queue_end(&s->asked[lane]);
	for (int i = 0; i < THREADS; i++) {
		if (s->thread[i].running)
			pthread_join(s->thread[i].thread, NULL);
	}
	for (uint32_t i = 0; i < PROFIL_MAX_OBSERVERS; i++)
		charge_give(&s->slot[i].charge);
	sd_event_source_unref(s->source);
	closep(&s->event);
	free(s);
	return NULL;
}

uint32_t table_slots_take_for_machine(struct table_slots *s)
{
	uint32_t slot = 0;

	take_all_done(s, false);
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

	take_all_done(s, false);
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
	set(s, slot, c);
	return 0;
}

int table_slots_ready(const struct table_slots *s, uint32_t slot, bool unwind)
{
	if (s->slot[slot].err)
		return s->slot[slot].err;
	if (s->slot[slot].waits)
		return -EINPROGRESS;
	return is_there(s->outer, slot) && (!unwind || is_there(s->unwind, slot)) ? 0
										  : -EINPROGRESS;
}

void table_slots_give(struct table_slots *s, uint32_t slot)
{
	struct slot *at = &s->slot[slot];

	at->ending = true;
	if (at->filled)
		set(s, slot, nothing);
	else
		free_slot(at);
}
