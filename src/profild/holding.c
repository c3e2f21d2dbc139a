/* holding.c - what targets hold of the maps: an index, regions, counters */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/scope.h"
#include "grace.h"
#include "holding.h"
#include "maps.h"
#include "range.h"
#include "session.h"
#include "skeleton.h"

struct holding {
	struct holding *next;
	uint32_t index;
	uint32_t region_first;
	uint32_t nregions;
	uint32_t counter_first;
	uint64_t ncounters;
	bool reader;
};

struct holdings {
	struct maps *maps;
	struct range *indices;
	struct range *regions;
	struct chunks *chunks;
	struct grace *grace;
	void (*settled)(void *arg);
	void *arg;
	struct holding *leaving;  /* whose grace period has yet to begin */
	struct holding *waiting;  /* whose grace period is under way */
	struct grace_drops drops; /* chunks that go meanwhile */
};

static void free_again(struct holdings *h, const struct holding *was)
{
	struct processes *p = &h->maps->processes;

	/* A fork that was under way when the target stopped may have brought one more in. */
	processes_clear(p, 0, was->index);
	memset(&p->target[was->index], 0, sizeof(struct profil_target));
	if (was->ncounters)
		chunks_give(h->chunks, was->counter_first, was->ncounters, was->reader);
	range_give(h->regions, was->region_first, was->nregions);
	range_give(h->indices, was->index, 1);
}

static void free_all(struct holdings *h, struct holding **list)
{
	while (*list) {
		struct holding *was = *list;

		*list = was->next;
		free_again(h, was);
		free(was);
	}
}

static void begin_grace(struct holdings *h)
{
	struct grace_drops *drops = &h->drops;

	if (h->waiting || drops->n)
		return;
	drops->n = chunks_leaving(h->chunks, drops->key, GRACE_DROPS);
	if (!h->leaving && !drops->n)
		return;
	if (!grace_ask(h->grace, drops))
		h->waiting = steal(h->leaving);
	else
		drops->n = 0; /* with the next who leaves */
}

static void on_grace(void *arg)
{
	struct holdings *h = arg;

	h->settled(h->arg);
	chunks_left(h->chunks, h->drops.key, h->drops.n);
	h->drops.n = 0;
	free_all(h, &h->waiting);
	begin_grace(h);
}

int holdings_open(struct holdings **out, struct maps *maps, struct store *store, sd_event *event,
		  void (*settled)(void *arg), void *arg)
{
	struct holdings *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return -ENOMEM;
	h->maps = maps;
	h->drops.map = bpf_map__fd(maps->skel->maps.chunks);
	h->settled = settled;
	h->arg = arg;
	err = range_new(&h->indices, PROFIL_MAX_TARGETS);
	if (!err)
		err = range_new(&h->regions, PROFIL_MAX_REGIONS);
	if (!err)
		err = chunks_open(&h->chunks, bpf_map__fd(maps->skel->maps.chunks),
				  bpf_map__fd(maps->skel->maps.chunk_0), store);
	if (!err)
		err = grace_open(&h->grace, event, on_grace, h);
	if (err) {
		holdings_close(h);
		return err;
	}
	*out = h;
	return 0;
}

struct holdings *holdings_close(struct holdings *h)
{
	if (!h)
		return NULL;
	grace_close(h->grace);
	free_all(h, &h->waiting);
	free_all(h, &h->leaving);
	chunks_close(h->chunks);
	range_free(h->regions);
	range_free(h->indices);
	free(h);
	return NULL;
}

/* How far a tick looks for @t's regions. */
static uint32_t regions_end(const struct target *t)
{
	return target_searched(t) ? t->region_first + t->nregions : 0;
}

int holdings_take(struct holdings *h, struct target *t)
{
	int err = range_take(h->indices, 1, 1, &t->index);

	if (err)
		return -EAGAIN;
	err = range_take(h->regions, t->nregions, 1, &t->region_first);
	if (err) {
		range_give(h->indices, t->index, 1);
		return -EAGAIN;
	}
	err = maps_reach(h->maps, t->index + 1, regions_end(t));
	if (!err)
		err = chunks_take(h->chunks, t->ncounters, t->session->reader != NULL,
				  &t->counter_first);
	if (err) {
		range_give(h->regions, t->region_first, t->nregions);
		range_give(h->indices, t->index, 1);
		return -ENOMEM;
	}
	return 0;
}

int holdings_take_at(struct holdings *h, const struct target *t)
{
	int err = range_take_at(h->indices, t->index, 1);

	if (err)
		return err;
	err = range_take_at(h->regions, t->region_first, t->nregions);
	if (err) {
		range_give(h->indices, t->index, 1);
		return err;
	}
	err = maps_reach(h->maps, t->index + 1, regions_end(t));
	if (!err)
		err = chunks_take_at(h->chunks, t->counter_first, t->ncounters);
	if (err) {
		range_give(h->regions, t->region_first, t->nregions);
		range_give(h->indices, t->index, 1);
	}
	return err;
}

void holdings_give(struct holdings *h, const struct target *t, bool quiet)
{
	struct holding *was = calloc(1, sizeof(*was));

	if (quiet)
		chunks_give(h->chunks, t->counter_first, t->ncounters, false);
	if (!was)
		return; /* its numbers stay taken: the price of having no memory left */
	was->index = t->index;
	was->region_first = t->region_first;
	was->nregions = t->nregions;
	was->counter_first = t->counter_first;
	was->ncounters = quiet ? 0 : t->ncounters;
	was->reader = t->session && t->session->reader;
	was->next = h->leaving;
	h->leaving = was;
	begin_grace(h);
}

struct chunks *holdings_chunks(const struct holdings *h)
{
	return h->chunks;
}
