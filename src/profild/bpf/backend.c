/* backend.c - the kernel's sampler: maps, programs and clocks behind sampler.h */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profild/clock/clock.h"
#include "profild/clock/event_links.h"
#include "profild/clock/late_programs.h"
#include "profild/clock/source.h"
#include "base/clocks.h"
#include "base/log.h"
#include "reservation.h"
#include "lifecycle_hooks.h"
#include "maps.h"
#include "process_table.h"
#include "sampler_bpf.h"
#include "profild/profile/counters.h"
#include "profild/profile/own_profile.h"
#include "profild/skeleton.h"
#include "profild/store.h"
#include "target_use.h"
#include "user_slots.h"

static struct sampler_bpf *self(struct sampler *s)
{
	return (struct sampler_bpf *)s;
}

/*
 * Consumes the ring. Not reentrant: a handler may call this, but the outer call consumes the
 * following events anyway, and libbpf would pass the handler the same event again.
 */
static void consume(struct sampler_bpf *b)
{
	if (b->consuming)
		return;
	b->consuming = true;
	ring_buffer__consume(b->ring);
	b->consuming = false;
}

/* --- targets ---------------------------------------------------------------------------------- */

static int set_owner(struct sampler_bpf *b, const struct target *t)
{
	struct profil_owner owner;

	own_profile_owner(t->profile, &owner);
	owner.counter_first = t->counter_first;
	owner.ncounters = t->ncounters;
	owner.nbins = t->nbins;
	return maps_set_owner(&b->maps, t->index, &owner);
}

void sampler_bpf_add(struct sampler_bpf *b, struct target *t)
{
	b->target[t->index] = t;
	if (b->end <= t->index)
		b->end = t->index + 1;
	process_table_set_dirty(&b->maps.processes, t->index);
}

static void remove_target(struct sampler_bpf *b, const struct target *t)
{
	b->target[t->index] = NULL;
	while (b->end && !b->target[b->end - 1])
		b->end--;
}

/* Inserts @t, which is complete in the maps, into the process table: the last step that can fail.
 */
static int enter(struct sampler_bpf *b, struct target *t, const struct target *old,
		 uint32_t generation)
{
	struct profil_target *k = &b->maps.processes.target[t->index];
	uint32_t exec_id;
	int err;

	t->ledger = &b->maps.ledger[t->index];
	memset(t->ledger, 0, sizeof(*t->ledger));
	*k = (struct profil_target){
		.period_ns = (__u32)t->period_ns,
		.region_first = t->region_first,
		.nregions = (__u16)t->nregions,
		.flags = (__u16)t->flags,
		.user = t->user,
	};
	clocks_begin(b->clocks, k);
	sampler_bpf_add(b, t);
	err = set_owner(b, t);
	if (err) {
		clocks_begun(b->clocks, k);
		return err;
	}
	if (old) {
		err = process_table_move(&b->maps.processes, (__u32)t->tgid, generation, old->index,
					 t->index);
	} else {
		err = maps_exec_id(&b->maps, (__u32)t->tgid, &exec_id)
			      ?: process_table_insert(&b->maps.processes, (__u32)t->tgid, exec_id,
						      t->index);
	}
	clocks_begun(b->clocks, k);
	return err;
}

static int bpf_reserve(struct sampler *s, struct target *t, void (*done)(void *arg, int err),
		       void *arg)
{
	return target_reserve(self(s), t, done, arg);
}

static void bpf_unreserve(struct sampler *s, struct target *t)
{
	target_unreserve(self(s), t);
}

static int bpf_start(struct sampler *s, struct target *t, const struct target *old,
		     uint32_t generation)
{
	struct sampler_bpf *b = self(s);
	int err = target_use(b, t);

	if (err)
		return err;
	err = reservation_take(b->reservations, t);
	if (err) {
		target_unuse(b, t);
		return err;
	}
	for (uint32_t i = 0; i < t->nregions; i++)
		t->region[i].first += t->counter_first;
	t->placed = true;
	err = maps_write_regions(&b->maps, t, 0, t->nregions);
	return err ? err : enter(b, t, old, generation);
}

static void bpf_samples(struct sampler *s, const struct target *t, struct samples *out)
{
	const volatile struct profil_target *k = &self(s)->maps.processes.target[t->index];

	memset(out, 0, sizeof(*out));
	if (!t->placed)
		return;
	out->unmatched = k->unmatched;
	out->lost = k->lost;
	out->unfollowed = k->unfollowed;
	out->total = k->total - k->raw; /* the ledger counts raw samples, which are events */
	/* A sample that finds the target closed is in the total for a moment, but never counted. */
	if (t->drained)
		out->total = out->unmatched + out->lost + t->ledger->drained;
}

/*
 * Samples that the kernel has counted and that have no outcome yet: in a counter, or in flight. The
 * total is read last, so that the result is never 0 while there is one.
 */
static uint64_t missing(const volatile struct profil_target *k, const struct target *t)
{
	uint64_t known = k->raw + k->unmatched + k->lost + t->ledger->drained + t->in_flight;

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return k->total - known;
}

static struct target *next_dirty_target(const struct sampler_bpf *b, uint32_t *at)
{
	for (; process_table_next_dirty(&b->maps.processes, at, b->end); ++*at) {
		struct target *t = b->target[*at];

		if (t)
			return t;
	}
	return NULL;
}

static struct target *bpf_next(struct sampler *s, uint32_t *at)
{
	struct sampler_bpf *b = self(s);
	struct target *t = next_dirty_target(b, at);

	if (t)
		process_table_clear_dirty(&b->maps.processes, (*at)++);
	return t;
}

static bool bpf_rests(struct sampler *s)
{
	struct sampler_bpf *b = self(s);
	uint32_t at = 0;

	process_table_arm_wakeup(&b->maps.processes);
	return !next_dirty_target(b, &at);
}

static struct profil_chunk *const *chunks_of(const struct sampler_bpf *b)
{
	return counter_pool_chunks(reservations_chunks(b->reservations));
}

static int bpf_take(struct sampler *s, struct target *t, struct counts *out)
{
	struct sampler_bpf *b = self(s);
	const volatile struct profil_target *k = &b->maps.processes.target[t->index];

	if (!t->cursor.begun) {
		if (t->profile->flags & PROFIL_START_PCS)
			consume(b);
		if (!t->placed || !missing(k, t))
			return 0;
		t->cursor.begun = true;
		t->cursor.region = 0;
		t->cursor.at = 0;
	}
	if (counters_take(chunks_of(b), t, out))
		return 1;
	t->cursor.begun = false;
	return 0;
}

static void bpf_put_back(struct sampler *s, struct target *t, uint32_t owner, uint32_t bin,
			 const uint32_t *count, uint32_t n)
{
	struct sampler_bpf *b = self(s);

	for (uint32_t i = 0; t->placed && i < n; i++) {
		if (count[i])
			counters_add(chunks_of(b), (uint64_t)t->region[owner].first + bin + i,
				     count[i]);
	}
	process_table_set_dirty(&b->maps.processes, t->index);
}

static void bpf_count(struct sampler *s, struct target *t, uint32_t owner, uint32_t bin, uint32_t n)
{
	struct sampler_bpf *b = self(s);

	__atomic_fetch_add(&b->maps.processes.target[t->index].total, n, __ATOMIC_SEQ_CST);
	bpf_put_back(s, t, owner, bin, &n, 1);
}

/*
 * With @last, samples that did not arrive in time are lost. Then the target is not drained, and its
 * counters are freed only after an RCU grace period.
 */
static bool bpf_settled(struct sampler *s, struct target *t, bool last)
{
	struct sampler_bpf *b = self(s);
	uint64_t late;

	if (!t->placed || t->settled)
		return true;
	late = missing(&b->maps.processes.target[t->index], t);
	if (late && !last)
		return false;
	t->ledger->drained += late;
	t->ledger->dropped += late;
	t->drained = !late;
	t->settled = true;
	return true;
}

static bool bpf_ended(struct sampler *s, const struct target *t)
{
	return t->placed &&
	       *(const volatile __u32 *)&self(s)->maps.processes.target[t->index].ended;
}

static void bpf_stop(struct sampler *s, struct target *t)
{
	struct sampler_bpf *b = self(s);

	if (!t->placed)
		return;
	maps_set_owner(&b->maps, t->index, NULL);
	process_table_clear(&b->maps.processes, (__u32)t->tgid, t->index);
}

static struct target *bpf_find(struct sampler *s, pid_t tgid, bool *unbound, uint32_t *generation)
{
	struct sampler_bpf *b = self(s);
	uint64_t entry;

	for (int at = 0; (entry = process_table_next(&b->maps.processes, (__u32)tgid, &at));) {
		struct target *t = b->target[profil_entry_target(entry)];

		*unbound = entry & PROFIL_ENTRY_UNBOUND;
		*generation = profil_entry_generation(entry);
		if (t)
			return t;
	}
	return NULL;
}

static pid_t bpf_other(struct sampler *s, const struct target *t, pid_t tgid)
{
	return (pid_t)process_table_other(&self(s)->maps.processes, (__u32)tgid, t->index);
}

static bool bpf_leave(struct sampler *s, struct target *t, pid_t tgid)
{
	struct sampler_bpf *b = self(s);

	process_table_remove(&b->maps.processes, (__u32)tgid, t->index);
	if (bpf_ended(s, t))
		return false;
	set_owner(b, t);
	return true;
}

static bool bpf_orphan(struct sampler *s, struct target *t)
{
	struct sampler_bpf *b = self(s);

	process_table_orphan(&b->maps.processes, t->index);
	if (bpf_ended(s, t))
		return false;
	set_owner(b, t);
	return true;
}

static void bpf_release(struct sampler *s, struct target *t)
{
	struct sampler_bpf *b = self(s);

	if (!t->placed)
		return;
	remove_target(b, t);
	t->counts = *t->ledger; /* the caller still reads it */
	t->ledger = &t->counts;
	reservation_give(b->reservations, t, t->drained);
	target_unuse(b, t);
}

static void bpf_region_off(struct sampler *s, struct target *t, uint32_t owner)
{
	for (uint32_t i = owner; i < t->nregions; i++) {
		if (t->region[i].owner != owner)
			continue;
		t->region[i].x.span = 0;
		maps_write_regions(&self(s)->maps, t, i, 1);
	}
}

static unsigned int bpf_chunk_count(struct sampler *s)
{
	return counter_pool_count(reservations_chunks(self(s)->reservations));
}

static unsigned int bpf_children(struct sampler *s, uid_t uid, bool root)
{
	return user_slot_children(self(s)->maps.processes.tables, uid, root);
}

/* --- the ring --------------------------------------------------------------------------------- */

static int on_ring_event(void *ctx, void *bytes, size_t size)
{
	struct sampler_bpf *b = ctx;
	const struct profil_event *event = bytes;
	struct target *t;

	if (size < sizeof(*event) || event->target >= PROFIL_MAX_TARGETS)
		return 0;
	if (event->kind != PROFIL_EVENT_RAW)
		return 0;
	t = b->target[event->target];
	process_table_raw_taken(&b->maps.processes, event->target);
	if (t)
		b->s.sink->pc(t, event);
	/* After an error libbpf returns; the next call continues with the next event. */
	return b->turn_ends_ns && now_ns() > b->turn_ends_ns ? -EAGAIN : 0;
}

/* A pc may give a fork child a profile, which takes 0.1 ms. */
#define TURN_NS 1000000

/* Consumes events for a limited time: other sources of the event loop have their turn. */

static int on_ring(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct sampler_bpf *b = userdata;

	b->turn_ends_ns = now_ns() + TURN_NS;
	consume(b);
	b->turn_ends_ns = 0;
	return 0;
}

/* --- open and close --------------------------------------------------------------------------- */

static bool bpf_keeps(struct sampler *s)
{
	return store_kind(self(s)->store) == STORE_MANAGER;
}

/* Consumes all events of targets whose index is about to be reused. */
static void on_settled(void *arg)
{
	struct sampler_bpf *b = arg;

	consume(b);
}

static struct sampler *bpf_close(struct sampler *s)
{
	struct sampler_bpf *b = self(s);

	observers_close(b->s.places);
	if (b->s.table_ids > 0)
		close(b->s.table_ids);
	reservations_close(b->reservations);
	clocks_close(b->clocks);
	event_links_close(b->events);
	late_programs_close(b->programs);
	lifecycle_hooks_close(b->hooks);
	sd_event_source_unref(b->ring_source);
	ring_buffer__free(b->ring);
	maps_close(&b->maps);
	if (b->store && store_kind(b->store) == STORE_BPFFS)
		store_clear(b->store);
	store_close(b->store);
	free(b);
	return NULL;
}

static const struct sampler_ops bpf_ops = {
	.close = bpf_close,
	.reserve = bpf_reserve,
	.unreserve = bpf_unreserve,
	.start = bpf_start,
	.stop = bpf_stop,
	.release = bpf_release,
	.next = bpf_next,
	.rests = bpf_rests,
	.take = bpf_take,
	.put_back = bpf_put_back,
	.count = bpf_count,
	.settled = bpf_settled,
	.orphan = bpf_orphan,
	.region_off = bpf_region_off,
	.samples = bpf_samples,
	.ended = bpf_ended,
	.recover = sampler_bpf_recover,
	.keeps = bpf_keeps,
	.find = bpf_find,
	.other = bpf_other,
	.leave = bpf_leave,
	.chunk_count = bpf_chunk_count,
	.children = bpf_children,
};

static int open_rest(struct sampler_bpf *b, const struct config *config, sd_event *event)
{
	int err = reservations_open(&b->reservations, &b->maps, b->store, &config->quota, event,
				    on_settled, b)
		      ?: late_programs_open(&b->programs, b->maps.skel, event)
		      ?: clocks_open(&b->clocks, config, b->maps.skel, b->programs, b->store, event)
		      ?: event_links_open(&b->events, b->programs, b->maps.processes.tables, event)
		      ?: lifecycle_hooks_open(&b->hooks, b->maps.skel, b->store, event)
		      ?: observers_open(&b->s.places, b, event);

	if (err)
		return err;
	b->ring = ring_buffer__new(bpf_map__fd(b->maps.skel->maps.events), on_ring_event, b, NULL);
	if (!b->ring)
		return -errno;
	err = sd_event_add_io(event, &b->ring_source, ring_buffer__epoll_fd(b->ring), EPOLLIN,
			      on_ring, b);
	return err < 0 ? err : 0;
}

/* The start has failed: leaves what an earlier daemon has stored to the next one. */
static int give_up(struct sampler_bpf *b, int err)
{
	if (b && b->store)
		store_abandon(b->store);
	if (b)
		bpf_close(&b->s);
	return err;
}

int sampler_bpf_open(struct sampler **out, const struct config *config, sd_event *event,
		     const struct sampler_sink *sink)
{
	struct sampler_bpf *b = calloc(1, sizeof(*b));
	int err = b ? store_open(&b->store, config) : -ENOMEM;

	if (!err) {
		err = maps_open(&b->maps, config, b->store);
		if (err)
			return give_up(b, err); /* it has been logged */
		err = open_rest(b, config, event);
	}
	if (err) {
		log_err("cannot set up maps, clocks and hooks: %s", strerror(-err));
		return give_up(b, err);
	}
	b->s.ops = &bpf_ops;
	b->s.sink = sink;
	b->s.image_lookup = b->maps.image_lookup;
	b->s.table_ids = bpf_link_create(bpf_program__fd(b->maps.skel->progs.table_ids), 0,
					 BPF_TRACE_ITER, NULL);
	if (b->s.table_ids < 0)
		log_warning(
			"cannot list tables: %s (those that clients keep after the end of their "
			"connections are not limited)",
			strerror(errno));
	*out = &b->s;
	return 0;
}
