/* buffer_writer.c - drains counts from the maps to the buffers of processes */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "buffer_writer.h"
#include "sampler.h"

struct writer {
	struct writer *next;
	struct profild *daemon;
	unsigned int refs;
	struct lane *lane;
	struct task *task; /* the batch */
	struct own_profile *queue, **queue_end;
	struct own_profile *batch, **batch_end; /* in the area's order */
	uint32_t used;				/* bytes of the area */
	bool kick;	/* profiles have been queued since the last submit() */
	bool submitted; /* the task is in the lane, and holds a reference */
};

static bool fill(void *arg, struct work *work, union work_area *area);
static void on_written(void *arg, const struct work_answer *a, union work_area *area);
static int on_idle(sd_event_source *source, void *userdata);

/* Allocates all memory that passes need, because a START can fail for lack of it, a pass cannot. */
static int writer_new(struct writer **out, struct profild *d, struct lane *lane)
{
	__cleanup(freep) struct writer *w = calloc(1, sizeof(*w));
	int err = 0;

	if (w && !d->on_idle)
		err = sd_event_add_defer(d->event, &d->on_idle, on_idle, d);
	if (err < 0)
		return err;
	if (w)
		w->task = task_new(&(struct work){ .kind = WORK_ADD }, fill, on_written, w);
	if (!w || !w->task)
		return -ENOMEM;
	w->lane = lane_ref(lane);
	w->daemon = d;
	w->next = d->writers;
	d->writers = w;
	w->queue_end = &w->queue;
	w->batch_end = &w->batch;
	*lane_own(lane) = w;
	*out = steal(w);
	return 0;
}

static int writer_get(struct writer **out, struct profild *d, struct lane *lane)
{
	struct writer *w = *lane_own(lane);
	int err = w ? 0 : writer_new(&w, d, lane);

	if (err)
		return err;
	w->refs++;
	*out = w;
	return 0;
}

/*
 * Profiles hold references, so none is queued or being written at the last one. The task holds one
 * too: fill() may release the last profile while the lane still uses the task.
 */
static void writer_unref(struct writer *w)
{
	struct writer **place = &w->daemon->writers;

	if (--w->refs)
		return;
	task_free(w->task);
	while (*place != w)
		place = &(*place)->next;
	*place = w->next;
	*lane_own(w->lane) = NULL;
	lane_unref(w->lane);
	free(w);
}

static void on_free(struct own_profile *own)
{
	writer_unref(own->writer);
}

int writer_join(struct own_profile *own, struct lane *lane)
{
	int err = writer_get(&own->writer, own->daemon, lane);

	if (err)
		return err;
	own->on_end = writer_forget;
	own->on_free = on_free;
	return 0;
}

/* --- waiters ---------------------------------------------------------------------------------- */

static void tell(struct own_profile *own, struct waiter **list, int err)
{
	struct waiter *waiter = steal(*list);

	own_profile_ref(own);
	while (waiter) {
		struct waiter *next = waiter->next;

		if (waiter->done)
			waiter->done(waiter->arg, err, own);
		free(waiter);
		waiter = next;
	}
	own_profile_unref(own);
}

/* Calls the waiters of profiles that had nothing to write, from the event loop. */
static int on_idle(sd_event_source *source, void *userdata)
{
	struct profild *d = userdata;

	while (d->idle) {
		struct own_profile *own = d->idle;

		d->idle = own->next_idle;
		own->idle = false;
		tell(own, &own->deferred, 0);
		own_profile_unref(own);
	}
	return 0;
}

static void append_waiters(struct waiter **to, struct waiter **from)
{
	while (*to)
		to = &(*to)->next;
	*to = steal(*from);
}

static void tell_later(struct own_profile *own, struct waiter **list)
{
	struct profild *d = own->daemon;

	if (!*list)
		return;
	append_waiters(&own->deferred, list);
	if (own->idle)
		return;
	own->idle = true;
	own->next_idle = d->idle;
	d->idle = own_profile_ref(own);
	sd_event_source_set_enabled(d->on_idle, SD_EVENT_ONESHOT);
}

/*
 * Takes the waiters that the latest pass has served. One that has come in the middle of the pass
 * waits for the next: this one has left counters behind it that may have counts by now.
 */
static struct waiter *take_served(struct own_profile *own)
{
	struct waiter **end = &own->waiting, *served = own->waiting, *rest;

	while (*end && (*end)->pass <= own->pass)
		end = &(*end)->next;
	rest = steal(*end);
	own->waiting = rest;
	return served == rest ? NULL : served;
}

int writer_wait(struct own_profile *own, own_profile_done *done, void *arg)
{
	struct waiter *waiter = calloc(1, sizeof(*waiter));

	if (!waiter)
		return -ENOMEM;
	waiter->done = done;
	waiter->arg = arg;
	waiter->pass = own->pass + 1;
	append_waiters(&own->waiting, &waiter);
	writer_queue(own);
	writer_kick(own);
	return 0;
}

/* --- filling a batch -------------------------------------------------------------------------- */

static uint32_t room(const struct writer *w)
{
	return WORK_AREA_BYTES - w->used;
}

/* Appends a span of @own to @p. Returns 1; 0: there is none; -ENOSPC: the area is full. */
static int put_counts(struct writer *w, union work_area *area, struct own_profile *own,
		      struct work_profile *p)
{
	struct sampler *sampler = own->daemon->sampler;
	struct work_span *span = (struct work_span *)(area->bytes + w->used);
	struct target *t = own->target;
	struct counts c = { .count = (uint32_t *)(span + 1) };
	int got;

	if (room(w) < sizeof(*span) + PROFIL_BLOCK_COUNTERS * sizeof(uint32_t))
		return -ENOSPC;
	c.room = (room(w) - sizeof(*span)) / sizeof(uint32_t);
	c.room = c.room < PROFIL_SPAN ? c.room / PROFIL_BLOCK_COUNTERS * PROFIL_BLOCK_COUNTERS
				      : PROFIL_SPAN;
	got = sampler->ops->take(sampler, t, &c);
	if (got <= 0)
		return got;
	*span = (struct work_span){
		.addr = t->region[c.owner].addr + (uint64_t)c.bin * own->width,
		.sum = c.sum,
		.owner = c.owner,
		.bin = c.bin,
		.n = c.n,
	};
	t->in_flight += c.sum;
	p->nspans++;
	w->used += sizeof(*span) + work_span_bytes(p, c.n);
	return 1;
}

/* The same for pcs; keep_pc() has limited them to the room in the buffer. */
static int put_pcs(struct writer *w, union work_area *area, struct own_profile *own,
		   struct work_profile *p)
{
	struct work_span *span = (struct work_span *)(area->bytes + w->used);
	struct target *t = own->target;
	uint32_t n = own->npcs, most;

	if (!n)
		return 0;
	if (room(w) < sizeof(*span) + sizeof(uint64_t))
		return -ENOSPC;
	most = (room(w) - (uint32_t)sizeof(*span)) / (uint32_t)sizeof(uint64_t);
	n = n < most ? n : most;
	*span = (struct work_span){
		.addr = t->region[0].addr + t->ledger->pcs * sizeof(uint64_t),
		.sum = n,
		.n = n,
	};
	memcpy(span + 1, own->pcs, n * sizeof(uint64_t));
	memmove(own->pcs, own->pcs + n, (own->npcs - n) * sizeof(uint64_t));
	own->npcs -= n;
	t->pcs_in_flight += n;
	p->nspans++;
	w->used += sizeof(*span) + work_span_bytes(p, n);
	return own->npcs ? -EAGAIN : 1;
}

/*
 * Appends the counts of @own. Returns false if there may be more: the area is full, or the rest
 * depends on the outcome of these (take() has returned -EAGAIN).
 */
static bool put_profile(struct writer *w, union work_area *area, struct own_profile *own, bool *any)
{
	struct work_profile *p = (struct work_profile *)(area->bytes + w->used);
	uint32_t before = w->used;
	int got;

	*any = false;
	if (room(w) < sizeof(*p))
		return false;
	own->pass += !own->target->cursor.begun;
	*p = (struct work_profile){
		.cookie_addr = own->cookie_addr,
		.slot = own->memory.slot,
		.width = own->width,
		.cap = own->cap,
		.flags = own->flags,
	};
	memcpy(p->cookie, own->cookie, sizeof(p->cookie));
	w->used += sizeof(*p);
	do
		got = put_counts(w, area, own, p);
	while (got > 0);
	if (!got && own->flags & PROFIL_START_PCS)
		got = put_pcs(w, area, own, p);
	*any = p->nspans || own->probe;
	if (*any)
		own->probe = false;
	else
		w->used = before;
	return got >= 0;
}

static void unqueue_first(struct writer *w)
{
	struct own_profile *own = w->queue;

	w->queue = own->next_queued;
	if (!w->queue)
		w->queue_end = &w->queue;
	own->queued = false;
}

static bool may_be_written(const struct own_profile *own)
{
	return (own->state == OWN_PROFILE_ON || own->state == OWN_PROFILE_ENDING) &&
	       !remote_lost(&own->memory);
}

/* True if @own will be queued again, when its memory has been opened. */
static bool must_wait(const struct own_profile *own)
{
	return own->state == OWN_PROFILE_STARTING || own->state == OWN_PROFILE_OPENING;
}

/*
 * Moves the first profile of the queue into the batch; if it has nothing to write, its waiters are
 * called later. Returns false if it does not fit.
 */
static bool fill_first(struct writer *w, union work_area *area)
{
	struct own_profile *own = w->queue;
	bool any = false, all = true, written = may_be_written(own);
	struct waiter *served = NULL;

	if (written)
		all = put_profile(w, area, own, &any);
	if (!all && !any)
		return false; /* it will be the first of the next batch */
	unqueue_first(w);
	if (all && written)
		served = take_served(own);
	else if (all && !must_wait(own))
		served = steal(own->waiting);
	if (any)
		append_waiters(&own->flushed, &served);
	else
		tell_later(own, &served);
	if (!any) {
		if (written && own->waiting)
			writer_queue(own); /* again, for those that the pass has not served */
		own_profile_unref(own);
		return true;
	}
	own->again = !all;
	own->writing = true;
	own->next_written = NULL;
	*w->batch_end = own;
	w->batch_end = &own->next_written;
	return true;
}

/* Fills the area. Returns false if it is empty. */
static bool fill(void *arg, struct work *work, union work_area *area)
{
	struct writer *w = arg;

	w->used = 0;
	while (w->queue && fill_first(w, area))
		;
	work->n = 0;
	for (const struct own_profile *own = w->batch; own; own = own->next_written)
		work->n++;
	return work->n;
}

/* --- the outcome ------------------------------------------------------------------------------ */

/* Enters the outcome of a span of counts into the ledger. */
static void book_counts(struct own_profile *own, const struct work_profile *p,
			const struct work_span *span)
{
	struct target *t = own->target;

	t->in_flight -= span->sum;
	t->ledger->drained += span->sum;
	t->ledger->dropped += p->err || span->err ? span->sum : span->saturated;
}

static void book_pcs(struct own_profile *own, const struct work_profile *p,
		     const struct work_span *span)
{
	struct target *t = own->target;

	t->pcs_in_flight -= span->n;
	if (p->err || span->err)
		t->ledger->dropped += span->n;
	else
		t->ledger->pcs += span->n;
}

/*
 * True if the span's outcome ends the whole profile. A fault may turn off only the region, as the
 * dialect says. The process never gets a signal.
 */
static bool ends_profile(struct own_profile *own, const struct work_span *span)
{
	struct sampler *sampler = own->daemon->sampler;

	if (span->err == -EFAULT && !(own->flags & PROFIL_START_FAULT_ENDS))
		sampler->ops->region_off(sampler, own->target, span->owner);
	return (span->err == -EFAULT && own->flags & PROFIL_START_FAULT_ENDS) ||
	       (span->saturated && own->flags & PROFIL_START_STOP_AT_CAP);
}

/* Puts the counts back into the maps, because the leader has ended but another process shares the
 * memory. */
static void put_back(struct own_profile *own, const struct work_span *span)
{
	struct sampler *sampler = own->daemon->sampler;

	own->target->in_flight -= span->sum;
	sampler->ops->put_back(sampler, own->target, span->owner, span->bin,
			       (const uint32_t *)(span + 1), span->n);
}

/*
 * Processes the worker's outcome for @own, which is at *@part, and advances *@part to the next
 * profile. Returns true if @own is over: its memory has ended, the process has cleared the cookie,
 * or ends_profile() says so.
 */
static bool apply(struct own_profile *own, const struct work_profile **part)
{
	struct sampler *sampler = own->daemon->sampler;
	const struct work_profile *p = *part;
	const struct work_span *span = (const struct work_span *)(p + 1);
	bool pcs = own->flags & PROFIL_START_PCS, over = false;
	pid_t other = 0;

	if (p->err == -ESRCH && own->state != OWN_PROFILE_ENDED && !pcs)
		other = sampler->ops->other(sampler, own->target, own->tgid);
	for (uint32_t i = 0; i < p->nspans; i++) {
		if (pcs)
			book_pcs(own, p, span);
		else if (other)
			put_back(own, span);
		else
			book_counts(own, p, span);
		over |= !other && ends_profile(own, span);
		span = (const struct work_span *)((const uint8_t *)(span + 1) +
						  work_span_bytes(p, span->n));
	}
	*part = (const struct work_profile *)span;
	if (other)
		own_profile_reopen(own, other);
	return over || (p->err && !other);
}

/* Counts the batch as lost: the worker has ended without an answer. */
static void give_up(struct own_profile *own)
{
	struct target *t = own->target;

	t->ledger->drained += t->in_flight;
	t->ledger->dropped += t->in_flight + t->pcs_in_flight;
	t->in_flight = 0;
	t->pcs_in_flight = 0;
}

static void submit(struct writer *w);

/* Calls the waiters of @own, unless they wait for counts that were put back into the maps. */
static void after_write(struct own_profile *own, bool over)
{
	if (over)
		own_profile_over(own);
	else if (own->state != OWN_PROFILE_OPENING)
		own_profile_check(own);
	if (own->state == OWN_PROFILE_OPENING) {
		append_waiters(&own->flushed, &own->waiting);
		own->waiting = steal(own->flushed);
		return;
	}
	if (own->again && may_be_written(own)) {
		writer_queue(own);
	} else {
		tell(own, &own->flushed, 0);
		if (own->waiting)
			writer_queue(own);
	}
	own->again = false;
}

/* Empties the queue: without a worker no memory is open, so nothing can be written. */
static void drop_queue(struct writer *w)
{
	while (w->queue) {
		struct own_profile *own = w->queue;

		unqueue_first(w);
		if (!must_wait(own))
			tell_later(own, &own->waiting);
		own_profile_unref(own);
	}
}

static void on_written(void *arg, const struct work_answer *a, union work_area *area)
{
	const struct work_profile *p = area ? (const struct work_profile *)area->bytes : NULL;
	struct writer *w = arg;
	struct own_profile *own = w->batch;

	w->submitted = false; /* the reference is released at the end */
	w->batch = NULL;
	w->batch_end = &w->batch;
	while (own) {
		struct own_profile *next = own->next_written;
		bool over = false;

		own->writing = false;
		if (p && !a->err)
			over = apply(own, &p);
		else
			give_up(own);
		after_write(own, over);
		own_profile_unref(own);
		own = next;
	}
	if (a->err)
		drop_queue(w);
	submit(w);
	writer_unref(w);
}

/* --- the queue -------------------------------------------------------------------------------- */

void writer_queue(struct own_profile *own)
{
	struct writer *w = own->writer;

	if (own->queued || !w)
		return;
	own->queued = true;
	own->next_queued = NULL;
	*w->queue_end = own_profile_ref(own);
	w->queue_end = &own->next_queued;
	w->kick = true;
}

static void submit(struct writer *w)
{
	w->kick = false;
	if (!w->queue || w->submitted)
		return;
	w->submitted = true;
	w->refs++;
	task_submit(w->task, w->lane);
}

void writer_kick(struct own_profile *own)
{
	if (own->writer)
		submit(own->writer);
}

void writers_kick(struct profild *d)
{
	for (struct writer *w = d->writers; w; w = w->next) {
		if (w->kick)
			submit(w);
	}
}

void writers_close(struct profild *d)
{
	struct writer *next;

	for (struct writer *w = d->writers; w; w = next) {
		next = w->next;
		if (!w->submitted)
			w->refs++;
		w->submitted = false; /* the lane ends without it */
		drop_queue(w);
		while (w->batch) {
			struct own_profile *own = w->batch;

			w->batch = own->next_written;
			own->writing = false;
			give_up(own);
			tell_later(own, &own->flushed);
			own_profile_unref(own);
		}
		writer_unref(w);
	}
	while (d->idle)
		on_idle(NULL, d);
	d->on_idle = sd_event_source_unref(d->on_idle);
}

void writer_forget(struct own_profile *own)
{
	tell_later(own, &own->waiting);
}
