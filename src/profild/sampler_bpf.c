/* sampler_bpf.c - ticks from the kernel: maps, programs and clocks behind sampler.h */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "clock_link.h"
#include "core/log.h"
#include "holding.h"
#include "lifetimes.h"
#include "maps.h"
#include "processes.h"
#include "sampler_bpf.h"
#include "session.h"
#include "skeleton.h"
#include "store.h"

static struct sampler_bpf *self(struct sampler *s)
{
	return (struct sampler_bpf *)s;
}

/*
 * Hands over what is in the ring. What an event leads to may ask for the next ones: they are next
 * anyway, and libbpf would begin with the same one again.
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

static bool same_session(const void *arg, uint32_t index)
{
	const struct target *old = arg;
	const struct target *other = self(old->session->daemon->sampler)->target[index];

	return other && other->session == old->session;
}

/* A reader's target ends with its connection: no other daemon needs to know of it. */
static int set_owner(struct sampler_bpf *b, const struct target *t)
{
	struct profil_owner owner;

	if (t->session->reader)
		return 0;
	session_owner(t->session, &owner);
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
	processes_mark_news(&b->maps.processes, t->index);
}

static void remove_target(struct sampler_bpf *b, const struct target *t)
{
	b->target[t->index] = NULL;
	while (b->end && !b->target[b->end - 1])
		b->end--;
}

/* Lets the kernel see @t, all of which is in the maps by now. */
static int enter(struct sampler_bpf *b, struct target *t, const struct target *old, uint32_t life)
{
	struct profil_target *k = &b->maps.processes.target[t->index];
	uint32_t image;
	int err;

	t->ledger = &b->maps.ledger[t->index];
	memset(t->ledger, 0, sizeof(*t->ledger));
	*k = (struct profil_target){
		.period_ns = (__u32)t->period_ns,
		.region_first = t->region_first,
		.nregions = (__u16)t->nregions,
		.flags = (__u16)t->flags,
		.near = target_near(t),
		.near_first = t->nregions ? t->region->first : 0,
	};
	clocks_begin(b->clocks, k);
	sampler_bpf_add(b, t);
	if (old) {
		err = processes_move(&b->maps.processes, (__u32)t->tgid, life, t->index,
				     same_session, old);
	} else {
		err = maps_image(&b->maps, (__u32)t->tgid, &image);
		if (!err)
			err = processes_insert(&b->maps.processes, (__u32)t->tgid, image, t->index);
	}
	return err ? err : set_owner(b, t);
}

int sampler_bpf_use(struct sampler_bpf *b, struct target *t)
{
	int err = lifetimes_use(b->lifetimes);

	if (err)
		return err;
	err = clocks_use(b->clocks, t->period_ns, &t->flags);
	if (err)
		lifetimes_unuse(b->lifetimes);
	return err;
}

void sampler_bpf_unuse(struct sampler_bpf *b, const struct target *t)
{
	clocks_unuse(b->clocks, t->period_ns, t->flags);
	lifetimes_unuse(b->lifetimes);
}

static int bpf_start(struct sampler *s, struct target *t, const struct target *old, uint32_t life)
{
	struct sampler_bpf *b = self(s);
	int err = sampler_bpf_use(b, t);

	if (err)
		return err;
	err = holdings_take(b->holdings, t);
	if (err) {
		sampler_bpf_unuse(b, t);
		return err;
	}
	for (uint32_t i = 0; i < t->nregions; i++)
		t->region[i].first += t->counter_first;
	t->held = true;
	err = maps_write_regions(&b->maps, t, 0, t->nregions);
	return err ? err : enter(b, t, old, life);
}

static void bpf_ticks(struct sampler *s, const struct target *t, struct ticks *out)
{
	const volatile struct profil_target *k = &self(s)->maps.processes.target[t->index];

	memset(out, 0, sizeof(*out));
	if (!t->held)
		return;
	out->unmatched = k->unmatched;
	out->lost = k->lost;
	out->raw = k->raw;
	out->total = k->total;
	/* A tick that finds it closed is in the total for a moment, and never counted. */
	if (t->quiet)
		out->total = out->unmatched + out->lost + out->raw + t->ledger->drained;
}

/* Each span is noted down before it leaves the counters, until it has reached the buffer. */
static void drain_region(struct sampler_bpf *b, struct target *t, uint32_t owner)
{
	const struct profil_region *r = &t->region[owner];
	struct profil_journal *j = b->maps.journal;
	uint64_t at = r->first, end = at + profil_counters_for(r->x.nbins);
	uint32_t n;

	while ((n = chunks_next(holdings_chunks(b->holdings), &at, end, PROFIL_SPAN))) {
		uint32_t bin = (uint32_t)(at - r->first);
		uint32_t bins = n < r->x.nbins - bin ? n : r->x.nbins - bin;

		memset(j->count, 0, n * sizeof(j->count[0]));
		j->target = t->index;
		j->owner = owner;
		j->bin = bin;
		j->n = bins;
		j->drained = t->ledger->drained;
		j->spilt = t->ledger->spilt;
		__atomic_store_n(&j->phase, PROFIL_JOURNAL_TAKING, __ATOMIC_RELEASE);
		t->ledger->drained += chunks_drain(holdings_chunks(b->holdings), at, n, j->count);
		b->s.sink->counts(t, owner, bin, j->count, bins, j);
		__atomic_store_n(&j->phase, PROFIL_JOURNAL_IDLE, __ATOMIC_RELEASE);
		at += n;
	}
}

/*
 * Ticks that the kernel has counted as such, and that have not been drained or come to something
 * else: the total is read last, so that it never seems to be none while there is one.
 */
static uint64_t missing(const volatile struct profil_target *k, const struct target *t)
{
	uint64_t known = k->raw + k->unmatched + k->lost + t->ledger->drained;

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return k->total - known;
}

static struct target *with_news(const struct sampler_bpf *b, uint32_t *at)
{
	for (; processes_next_news(&b->maps.processes, at, b->end); ++*at) {
		struct target *t = b->target[*at];

		if (t && !t->session->reader)
			return t;
	}
	return NULL;
}

static struct target *bpf_next(struct sampler *s, uint32_t *at)
{
	struct sampler_bpf *b = self(s);
	struct target *t = with_news(b, at);

	if (t)
		processes_take_news(&b->maps.processes, (*at)++);
	return t;
}

static bool bpf_rests(struct sampler *s)
{
	struct sampler_bpf *b = self(s);
	uint32_t at = 0;

	processes_await_news(&b->maps.processes);
	return !with_news(b, &at);
}

static void bpf_drain(struct sampler *s, struct target *t)
{
	struct sampler_bpf *b = self(s);
	const volatile struct profil_target *k = &b->maps.processes.target[t->index];

	if (t->session->flags & PROFIL_START_PCS)
		consume(b);
	if (!t->held || !t->ncounters || !missing(k, t))
		return;
	for (uint32_t i = 0; i < t->nregions; i++) {
		if (t->region[i].owner == i && t->region[i].x.nbins)
			drain_region(b, t, i);
	}
	if (missing(k, t)) /* a tick is under way: look again next time */
		processes_mark_news(&b->maps.processes, t->index);
}

/* A tick that found its target before it left takes a microsecond, a stolen CPU some more. */
#define SETTLE_NS 2000000

/* Takes what ticks under way still bring. Returns how many of them did not come in time. */
static uint64_t settle(struct sampler_bpf *b, struct target *t)
{
	const volatile struct profil_target *k = &b->maps.processes.target[t->index];
	uint64_t end = clock_now_ns() + SETTLE_NS, late;

	do {
		bpf_drain(&b->s, t);
		late = missing(k, t);
	} while (late && clock_now_ns() < end);
	return late;
}

static bool bpf_ended(struct sampler *s, const struct target *t)
{
	return *(const volatile __u32 *)&self(s)->maps.processes.target[t->index].ended;
}

static void bpf_stop(struct sampler *s, struct target *t)
{
	struct sampler_bpf *b = self(s);

	if (!t->held)
		return;
	maps_set_owner(&b->maps, t->index, NULL);
	processes_clear(&b->maps.processes, (__u32)t->tgid, t->index);
	if (!t->session->reader) {
		uint64_t late = settle(b, t);

		t->ledger->drained += late; /* what did not arrive in time is lost, and says so */
		t->ledger->spilt += late;
		t->quiet = !late;
	}
}

static struct target *bpf_find(struct sampler *s, pid_t tgid, bool *newborn)
{
	struct sampler_bpf *b = self(s);
	uint64_t entry;

	for (int at = 0; (entry = processes_next(&b->maps.processes, (__u32)tgid, &at));) {
		struct target *t = b->target[profil_entry_target(entry)];

		*newborn = entry & PROFIL_ENTRY_NEWBORN;
		if (t && !t->session->reader)
			return t;
	}
	return NULL;
}

static pid_t bpf_other(struct sampler *s, const struct target *t, pid_t tgid)
{
	return (pid_t)processes_other(&self(s)->maps.processes, (__u32)tgid, t->index);
}

static bool bpf_leave(struct sampler *s, struct target *t, pid_t tgid)
{
	struct sampler_bpf *b = self(s);

	processes_remove(&b->maps.processes, (__u32)tgid, t->index);
	settle(b, t);
	if (bpf_ended(s, t))
		return false;
	set_owner(b, t);
	return true;
}

static void bpf_release(struct sampler *s, struct target *t)
{
	struct sampler_bpf *b = self(s);

	if (!t->held)
		return;
	remove_target(b, t);
	t->own = *t->ledger; /* the caller still wants to know */
	t->ledger = &t->own;
	holdings_give(b->holdings, t, t->quiet);
	sampler_bpf_unuse(b, t);
}

static void bpf_region_off(struct sampler *s, struct target *t, uint32_t owner)
{
	for (uint32_t i = owner; i < t->nregions; i++) {
		if (t->region[i].owner != owner)
			continue;
		t->region[i].x.span = 0;
		maps_write_regions(&self(s)->maps, t, i, 1);
		if (!i)
			self(s)->maps.processes.target[t->index].near.span = 0;
	}
}

static int bpf_chunks(struct sampler *s, const struct target *t, int *fds, unsigned int *nfds)
{
	struct sampler_bpf *b = self(s);
	uint64_t n = (t->ncounters + PROFIL_CHUNK_COUNTERS - 1) / PROFIL_CHUNK_COUNTERS;

	if (n > *nfds)
		return -ENOMEM;
	for (unsigned int i = 0; i < n; i++)
		fds[i] = chunks_fd(holdings_chunks(b->holdings),
				   t->counter_first / PROFIL_CHUNK_COUNTERS + i);
	*nfds = (unsigned int)n;
	return 0;
}

static unsigned int bpf_chunk_count(struct sampler *s)
{
	return chunks_count(holdings_chunks(self(s)->holdings));
}

/* --- the ring --------------------------------------------------------------------------------- */

static int on_ring_event(void *ctx, void *bytes, size_t size)
{
	struct sampler_bpf *b = ctx;
	const struct profil_event *event = bytes;
	struct target *t = NULL;

	if (size >= sizeof(*event) && event->target < PROFIL_MAX_TARGETS)
		t = b->target[event->target];
	if (t && event->kind != PROFIL_EVENT_NEWS)
		b->s.sink->event(t, event);
	return 0;
}

static int on_ring(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct sampler_bpf *b = userdata;

	(void)source;
	(void)fd;
	(void)revents;
	consume(b);
	b->s.sink->idle(b->s.sink->arg);
	return 0;
}

/* --- open and close --------------------------------------------------------------------------- */

static bool bpf_keeps(struct sampler *s)
{
	return store_kind(self(s)->store) == STORE_MANAGER;
}

/* No event in the ring may name a target that is somebody else's by now. */
static void on_settled(void *arg)
{
	struct sampler_bpf *b = arg;

	consume(b);
}

static struct sampler *bpf_close(struct sampler *s)
{
	struct sampler_bpf *b = self(s);

	holdings_close(b->holdings);
	clocks_close(b->clocks);
	lifetimes_close(b->lifetimes);
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
	.start = bpf_start,
	.stop = bpf_stop,
	.release = bpf_release,
	.next = bpf_next,
	.rests = bpf_rests,
	.drain = bpf_drain,
	.region_off = bpf_region_off,
	.ticks = bpf_ticks,
	.ended = bpf_ended,
	.recover = sampler_bpf_recover,
	.keeps = bpf_keeps,
	.find = bpf_find,
	.other = bpf_other,
	.leave = bpf_leave,
	.chunks = bpf_chunks,
	.chunk_count = bpf_chunk_count,
};

static int open_rest(struct sampler_bpf *b, const struct config *config, sd_event *event)
{
	int err = holdings_open(&b->holdings, &b->maps, b->store, event, on_settled, b);

	if (!err)
		err = clocks_open(&b->clocks, config, b->maps.skel, b->store, event);
	if (!err)
		err = lifetimes_open(&b->lifetimes, b->maps.skel, b->store, event);
	if (err)
		return err;
	b->ring = ring_buffer__new(bpf_map__fd(b->maps.skel->maps.events), on_ring_event, b, NULL);
	if (!b->ring)
		return -errno;
	err = sd_event_add_io(event, &b->ring_source, ring_buffer__epoll_fd(b->ring), EPOLLIN,
			      on_ring, b);
	return err < 0 ? err : 0;
}

int sampler_bpf_open(struct sampler **out, const struct config *config, sd_event *event,
		     const struct sampler_sink *sink)
{
	struct sampler_bpf *b = calloc(1, sizeof(*b));
	int err = b ? store_open(&b->store, config) : -ENOMEM;

	if (!err) {
		err = maps_open(&b->maps, b->store);
		if (err) {
			bpf_close(&b->s);
			return err; /* it has said why */
		}
		err = open_rest(b, config, event);
	}
	if (err) {
		log_err("cannot set up the kernel's side: %s", strerror(-err));
		if (b)
			bpf_close(&b->s);
		return err;
	}
	b->s.ops = &bpf_ops;
	b->s.sink = sink;
	*out = &b->s;
	return 0;
}
