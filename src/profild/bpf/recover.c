/* recover.c - continues the profiles of an earlier daemon from the maps */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profild/clock/clock.h"
#include "profild/config.h"
#include "base/log.h"
#include "reservation.h"
#include "maps.h"
#include "process_table.h"
#include "sampler_bpf.h"
#include "target_use.h"
#include "profild/profile/own_profile.h"
#include "profild/store.h"

/* Takes over the target at t->index with all that it has; nothing if its data are inconsistent. */
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
	err = maps_read_regions(&b->maps, t)
		      ?: target_check(t)
		      ?: reservation_take_at(b->reservations, t, owner->uid, owner->root);
	if (err)
		return err;
	err = target_use(b, t);
	if (err) {
		reservation_give(b->reservations, t, false);
		return err;
	}
	k->user = t->user;
	k->flags = (__u16)t->flags; /* this daemon may use another clock */
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
		target_unuse(b, t);
		reservation_give(b->reservations, t, false);
		target_free(t);
		return err;
	}
	t->placed = true;
	sampler_bpf_add(b, t);
	if (!t->profile->tgid)
		process_table_orphan(&b->maps.processes, index);
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
		/* All its processes have ended, or the daemon was killed before it added one. */
		if (!err && owner.live && !k->members)
			owner.live = 0;
		if (!err && owner.live) {
			owner.tgid = process_table_leader(&b->maps.processes, owner.tgid, i);
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
		process_table_clear(&b->maps.processes, owner.tgid, i);
		memset(k, 0, sizeof(*k));
	}
	if (b->maps.found)
		counter_pool_sweep(reservations_chunks(b->reservations));
	store_sweep(b->store);
	if (n)
		log_notice("continuing %u profiles of an earlier daemon", n);
}
