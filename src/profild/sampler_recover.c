/* sampler_recover.c - the profiles of an earlier daemon, as they lie in the maps, go on */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "config.h"
#include "core/log.h"
#include "holding.h"
#include "maps.h"
#include "processes.h"
#include "sampler_bpf.h"
#include "session.h"
#include "store.h"

/* Takes what the target at t->index holds as it stands; nothing where it makes no sense. */
static int hold_again(struct sampler_bpf *b, struct target *t, const struct profil_owner *owner)
{
	struct profil_target *k = &b->maps.processes.target[t->index];
	int err;

	t->period_ns = k->period_ns;
	t->flags = k->flags;
	t->tgid = (pid_t)owner->tgid;
	t->region_first = k->region_first;
	t->nregions = k->nregions;
	t->counter_first = owner->counter_first;
	t->ncounters = owner->ncounters;
	t->nbins = owner->nbins;
	t->ledger = &b->maps.ledger[t->index];
	t->region = calloc(t->nregions ? t->nregions : 1, sizeof(*t->region));
	if (!t->region)
		return -ENOMEM;
	if (t->period_ns < period_of(RATE_MAX_HZ) || t->period_ns > period_of(RATE_MIN_HZ))
		return -EINVAL;
	err = maps_read_regions(&b->maps, t);
	if (!err)
		err = target_check(t);
	if (!err)
		err = holdings_take_at(b->holdings, t);
	if (err)
		return err;
	err = sampler_bpf_use(b, t);
	if (err) {
		holdings_give(b->holdings, t, false);
		return err;
	}
	k->flags = (__u16)t->flags; /* this daemon may have been given another clock */
	clocks_begin(b->clocks, k);
	return 0;
}

static int recover_target(struct sampler_bpf *b, uint32_t index, const struct profil_owner *owner)
{
	struct target *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->index = index;
	err = hold_again(b, t, owner);
	if (err) {
		target_free(t);
		return err;
	}
	err = b->s.sink->recover(b->s.sink->arg, t, owner);
	if (err) {
		sampler_bpf_unuse(b, t);
		holdings_give(b->holdings, t, false);
		target_free(t);
		return err;
	}
	t->held = true;
	sampler_bpf_add(b, t);
	if (!t->session->tgid)
		processes_orphan(&b->maps.processes, index);
	b->s.sink->redo(t, b->maps.journal);
	return 0;
}

void sampler_bpf_recover(struct sampler *s)
{
	struct sampler_bpf *b = (struct sampler_bpf *)s;
	unsigned int n = 0;

	for (uint32_t i = 0; b->maps.found && i < PROFIL_MAX_TARGETS; i++) {
		struct profil_target *k = &b->maps.processes.target[i];
		struct profil_owner owner = { 0 };
		int err = maps_get_owner(&b->maps, i, &owner);

		if (!err && !owner.live && !k->period_ns)
			continue;
		if (!err && owner.live) {
			owner.tgid = processes_leader(&b->maps.processes, owner.tgid, i);
			err = recover_target(b, i, &owner);
		}
		if (!err && owner.live) {
			n++;
			continue;
		}
		if (err)
			log_err("cannot take over the profile of process %u: %s", owner.tgid,
				strerror(-err));
		maps_set_owner(&b->maps, i, NULL);
		processes_clear(&b->maps.processes, owner.tgid, i);
		memset(k, 0, sizeof(*k));
	}
	b->maps.journal->phase = PROFIL_JOURNAL_IDLE;
	if (b->maps.found)
		chunks_sweep(holdings_chunks(b->holdings));
	maps_narrow(&b->maps);
	store_sweep(b->store);
	if (n)
		log_notice("%u profiles of an earlier daemon go on", n);
}
