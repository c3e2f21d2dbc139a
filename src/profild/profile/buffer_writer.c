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
	struct task task; /* the batch */
	struct own_profile *queue, **queue_end;
	struct own_profile *batch, **batch_end; /* in the area's order */
	uint32_t used;				/* bytes of the area */
	bool kick;	/* profiles have been queued since the last submit() */
	bool submitted; /* the task is in the lane, and holds a reference */
};

static bool writer_fill(void *arg, struct work *work, union work_area *area);
static void writer_written(void *arg, const struct work_answer *a, union work_area *area);

/* Allocates all memory that passes need, because a START can fail for lack of it, a pass cannot. */
static struct writer *writer_new(struct profild *d, struct lane *lane)
{
	struct writer *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->task = (struct task){
		.work.kind = WORK_ADD, .prepare = writer_fill, .done = writer_written, .arg = w
	};
	w->lane = lane_ref(lane);
	w->daemon = d;
	w->next = d->writers;
	d->writers = w;
	w->queue_end = &w->queue;
	w->batch_end = &w->batch;
	*lane_own(lane) = w;
	return w;
}

/*
 * Profiles hold references, so none is queued or being written at the last one. The task holds one
 * too: writer_fill() may release the last profile while the lane still uses the task.
 */
static void writer_unref(struct writer *w)
{
	struct writer **place = &w->daemon->writers;

	if (--w->refs)
		return;
	while (*place != w)
		place = &(*place)->next;
	*place = w->next;
	*lane_own(w->lane) = NULL;
	lane_unref(w->lane);
	free(w);
}

static void writer_leave(struct own_profile *own)
{
	writer_unref(own->writer);
}

int writer_join(struct own_profile *own, struct lane *lane,
		void (*on_outcome)(struct own_profile *own, enum writer_outcome outcome,
				   pid_t heir))
{
	struct writer *w = *lane_own(lane) ?: writer_new(own->daemon, lane);

	if (!w)
		return -ENOMEM;
	w->refs++;
	own->writer = w;
	own->on_outcome = on_outcome;
	own->on_free = writer_leave;
	return 0;
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

/* Takes the first profile off the queue; the caller has the queue's reference now. */
static struct own_profile *writer_unqueue(struct writer *w)
{
	struct own_profile *own = w->queue;

	w->queue = own->next_queued;
	if (!w->queue)
		w->queue_end = &w->queue;
	own->queued = false;
	return own;
}

static void writer_submit(struct writer *w)
{
	w->kick = false;
	if (!w->queue || w->submitted)
		return;
	w->submitted = true;
	w->refs++;
	lane_submit(w->lane, &w->task);
}

void writer_kick(struct own_profile *own)
{
	if (own->writer)
		writer_submit(own->writer);
}

void writers_kick(struct profild *d)
{
	for (struct writer *w = d->writers; w; w = w->next) {
		if (w->kick)
			writer_submit(w);
	}
}

uint64_t writer_pass(struct own_profile *own)
{
	own->asked = own->pass + 1;
	writer_queue(own);
	writer_kick(own);
	return own->asked;
}

/* The latest pass of @own has been written, or had nothing to write. */
static void writer_serve(struct own_profile *own)
{
	bool awaited = own->asked > own->served;

	own->served = own->pass;
	if (awaited)
		own_profile_mark(own);
}

/* What has been asked of @own cannot be written: its counts are lost, or stay in the maps. */
static void writer_drop(struct own_profile *own)
{
	if (own->pass < own->asked)
		own->pass = own->asked;
	writer_serve(own);
}

/* --- filling a batch -------------------------------------------------------------------------- */

static uint32_t writer_room(const struct writer *w)
{
	return WORK_AREA_BYTES - w->used;
}

/* Appends a span of @own to @p. Returns 1; 0: there is none; -ENOSPC: the area is full. */
static int writer_put_counts(struct writer *w, union work_area *area, struct own_profile *own,
			     struct work_profile *p)
{
	struct sampler *sampler = own->daemon->sampler;
	struct work_span *span = (struct work_span *)(area->bytes + w->used);
	struct target *t = own->target;
	struct counts c = { .count = (uint32_t *)(span + 1) };
	int got;

	if (writer_room(w) < sizeof(*span) + PROFIL_BLOCK_COUNTERS * sizeof(uint32_t))
		return -ENOSPC;
	c.room = (writer_room(w) - sizeof(*span)) / sizeof(uint32_t);
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
static int writer_put_pcs(struct writer *w, union work_area *area, struct own_profile *own,
			  struct work_profile *p)
{
	struct work_span *span = (struct work_span *)(area->bytes + w->used);
	struct target *t = own->target;
	uint32_t n = own->npcs, most;

	if (!n)
		return 0;
	if (writer_room(w) < sizeof(*span) + sizeof(uint64_t))
		return -ENOSPC;
	most = (writer_room(w) - (uint32_t)sizeof(*span)) / (uint32_t)sizeof(uint64_t);
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
static bool writer_put_profile(struct writer *w, union work_area *area, struct own_profile *own,
			       bool *any)
{
	struct work_profile *p = (struct work_profile *)(area->bytes + w->used);
	uint32_t before = w->used;
	int got;

	*any = false;
	if (writer_room(w) < sizeof(*p))
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
		got = writer_put_counts(w, area, own, p);
	while (got > 0);
	if (!got && own->flags & PROFIL_START_PCS)
		got = writer_put_pcs(w, area, own, p);
	*any = p->nspans || own->probe;
	if (*any)
		own->probe = false;
	else
		w->used = before;
	return got >= 0;
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
 * Moves the first profile of the queue into the batch, or serves it at once if it has nothing to
 * write. Returns false if it does not fit.
 */
static bool writer_fill_first(struct writer *w, union work_area *area)
{
	struct own_profile *own = w->queue;
	bool any = false, all = true, written = may_be_written(own);

	if (written)
		all = writer_put_profile(w, area, own, &any);
	if (!all && !any)
		return false; /* it will be the first of the next batch */
	writer_unqueue(w);
	if (any) {
		own->again = !all;
		own->writing = true;
		own->next_written = NULL;
		*w->batch_end = own;
		w->batch_end = &own->next_written;
		return true;
	}
	if (written)
		writer_serve(own);
	else if (!must_wait(own))
		writer_drop(own);
	if (written && own->asked > own->served)
		writer_queue(own); /* the pass has left counters behind it that may have counts */
	own_profile_unref(own);
	return true;
}

/* Fills the area. Returns false if it is empty. */
static bool writer_fill(void *arg, struct work *work, union work_area *area)
{
	struct writer *w = arg;

	w->used = 0;
	while (w->queue && writer_fill_first(w, area))
		;
	work->n = 0;
	for (const struct own_profile *own = w->batch; own; own = own->next_written)
		work->n++;
	return work->n;
}

/* --- the outcome ------------------------------------------------------------------------------ */

/* Enters the outcome of a span of counts into the ledger. */
static void writer_book_counts(struct own_profile *own, const struct work_profile *p,
			       const struct work_span *span)
{
	struct target *t = own->target;

	t->in_flight -= span->sum;
	t->ledger->drained += span->sum;
	t->ledger->dropped += p->err || span->err ? span->sum : span->saturated;
}

static void writer_book_pcs(struct own_profile *own, const struct work_profile *p,
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
static bool span_ends_profile(struct own_profile *own, const struct work_span *span)
{
	struct sampler *sampler = own->daemon->sampler;

	if (span->err == -EFAULT && !(own->flags & PROFIL_START_FAULT_ENDS))
		sampler->ops->region_off(sampler, own->target, span->owner);
	return (span->err == -EFAULT && own->flags & PROFIL_START_FAULT_ENDS) ||
	       (span->saturated && own->flags & PROFIL_START_STOP_AT_CAP);
}

/* Puts the counts back into the maps, because the leader has ended but another process shares the
 * memory. */
static void writer_put_back(struct own_profile *own, const struct work_span *span)
{
	struct sampler *sampler = own->daemon->sampler;

	own->target->in_flight -= span->sum;
	sampler->ops->put_back(sampler, own->target, span->owner, span->bin,
			       (const uint32_t *)(span + 1), span->n);
}

/*
 * Enters the worker's outcome for @own, which is at *@part, into the ledger, and advances *@part to
 * the next profile. WRITER_PUT_BACK: @heir has the memory, too.
 */
static enum writer_outcome writer_apply(struct own_profile *own, const struct work_profile **part,
					pid_t *heir)
{
	struct sampler *sampler = own->daemon->sampler;
	const struct work_profile *p = *part;
	const struct work_span *span = (const struct work_span *)(p + 1);
	bool pcs = own->flags & PROFIL_START_PCS, over = p->err;

	*heir = 0;
	if (p->err == -ESRCH && own->state == OWN_PROFILE_ON && !pcs)
		*heir = sampler->ops->other(sampler, own->target, own->tgid);
	for (uint32_t i = 0; i < p->nspans; i++) {
		if (pcs)
			writer_book_pcs(own, p, span);
		else if (*heir)
			writer_put_back(own, span);
		else
			writer_book_counts(own, p, span);
		over |= !*heir && span_ends_profile(own, span);
		span = (const struct work_span *)((const uint8_t *)(span + 1) +
						  work_span_bytes(p, span->n));
	}
	*part = (const struct work_profile *)span;
	return *heir ? WRITER_PUT_BACK : over ? WRITER_OVER : WRITER_WRITTEN;
}

/* Counts the batch as lost: the worker has ended without an answer. */
static enum writer_outcome writer_lose(struct own_profile *own)
{
	struct target *t = own->target;

	if (!t) /* left to the next daemon */
		return WRITER_WORKER_LOST;
	t->ledger->drained += t->in_flight;
	t->ledger->dropped += t->in_flight + t->pcs_in_flight;
	t->in_flight = 0;
	t->pcs_in_flight = 0;
	return WRITER_WORKER_LOST;
}

/*
 * The batch has been written, or with @a->err it is lost. Then no memory is open, and what is
 * queued cannot be written either.
 */
static void writer_written(void *arg, const struct work_answer *a, union work_area *area)
{
	const struct work_profile *p = a->err || !area ? NULL : (const void *)area->bytes;
	struct writer *w = arg;
	struct own_profile *own = steal(w->batch);

	w->batch_end = &w->batch;
	while (own) {
		struct own_profile *next = own->next_written;
		enum writer_outcome outcome;
		pid_t heir = 0;

		outcome = p ? writer_apply(own, &p, &heir) : writer_lose(own);
		own->writing = false;
		own->on_outcome(own, outcome, heir);
		if (!own->again && own->state != OWN_PROFILE_OPENING)
			writer_serve(own);
		if (!may_be_written(own))
			own_profile_mark(own);
		if (own->again || own->asked > own->served)
			writer_queue(own);
		own_profile_unref(own);
		own = next;
	}
	while (a->err && w->queue) {
		own = writer_unqueue(w);
		if (!must_wait(own))
			writer_drop(own);
		own_profile_unref(own);
	}
	w->submitted = false; /* until here nothing fills the area; the reference goes at the end */
	writer_submit(w);
	writer_unref(w);
}

void writers_close(struct profild *d)
{
	struct writer *next;

	for (struct writer *w = d->writers; w; w = next) {
		next = w->next;
		if (!w->submitted)
			w->refs++;
		w->submitted = false; /* the lane ends without it */
		while (w->queue)
			own_profile_unref(writer_unqueue(w));
		while (w->batch) {
			struct own_profile *own = w->batch;

			w->batch = own->next_written;
			own->writing = false;
			writer_lose(own);
			own_profile_unref(own);
		}
		writer_unref(w);
	}
}
