/* target.c - one profiled address space, with its regions and counters */
#include <errno.h>
#include <stdlib.h>

#include "base/count_while.h"
#include "base/cleanup.h"
#include "target.h"

/*
 * Checks that region @i cannot reach beyond the client's own counters: pieces are sorted, and agree
 * with the first piece of their buffer. The arithmetic need not be checked, because profil_bin()
 * never returns a bin of nbins or above.
 */
static int target_check_message(const struct profil_msg_region *r, uint32_t i)
{
	const struct profil_msg_region *owner = &r[r[i].owner];

	if (r[i].owner > i || owner->owner != r[i].owner)
		return -EINVAL;
	if (owner->addr != r[i].addr || owner->x.nbins != r[i].x.nbins)
		return -EINVAL;
	if (i && r[i].lo < r[i - 1].lo)
		return -EINVAL;
	return 0;
}

void target_charges_give(struct target_charges *c)
{
	charge_give(&c->slot);
	charge_give(&c->regions);
	charge_give(&c->counters);
}

void target_charges_move(struct target_charges *to, struct target_charges *from)
{
	charge_move(&to->slot, &from->slot);
	charge_move(&to->regions, &from->regions);
	charge_move(&to->counters, &from->counters);
}

int target_charge(struct target *t, struct user *user, bool adopt)
{
	struct target_charges *c = &t->charges;
	int err;

	if (adopt) {
		charge_adopt(&c->slot, user, RES_TARGETS, 1);
		charge_adopt(&c->regions, user, RES_REGIONS, t->nregions);
		charge_adopt(&c->counters, user, RES_COUNTERS, t->ncounters);
		return 0;
	}
	err = charge_take(&c->slot, user, RES_TARGETS, 1)
		      ?: charge_take(&c->regions, user, RES_REGIONS, t->nregions)
		      ?: charge_take(&c->counters, user, RES_COUNTERS, t->ncounters);
	if (err)
		target_charges_give(c);
	return err;
}

static struct target *target_alloc(struct own_profile *profile, pid_t tgid)
{
	struct target *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->profile = profile;
	t->ledger = &t->counts;
	t->tgid = tgid;
	return t;
}

/* Gives @t @n zeroed regions. */
static int target_alloc_regions(struct target *t, uint32_t n)
{
	t->region = calloc(n ? n : 1, sizeof(*t->region));
	t->nregions = n;
	return t->region ? 0 : -ENOMEM;
}

int target_new(struct target **out, struct own_profile *profile, pid_t tgid,
	       const struct profil_msg_region *region, uint32_t n)
{
	struct target *t = target_alloc(profile, tgid);

	if (!t || target_alloc_regions(t, n)) {
		target_free(t);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct profil_region *r = &t->region[i];

		if (target_check_message(region, i)) {
			target_free(t);
			return -EINVAL;
		}
		r->lo = region[i].lo;
		r->x = region[i].x;
		r->addr = region[i].addr;
		r->owner = region[i].owner;
		r->first = (uint32_t)t->ncounters;
		if (r->owner == i) {
			t->ncounters += profil_counters_for(r->x.nbins);
			t->nbins += r->x.nbins;
		} else {
			r->first = t->region[r->owner].first;
		}
		if (t->ncounters > (uint64_t)PROFIL_MAX_CHUNKS * PROFIL_CHUNK_COUNTERS) {
			target_free(t);
			return -ENOMEM;
		}
	}
	*out = t;
	return 0;
}

int target_copy(struct target **out, struct own_profile *profile, pid_t tgid,
		const struct target *t, struct user *user)
{
	struct target *copy = target_alloc(profile, tgid);
	int err;

	if (!copy)
		return -ENOMEM;
	copy->period_ns = t->period_ns;
	copy->flags = t->flags;
	copy->nregions = t->nregions;
	copy->ncounters = t->ncounters;
	copy->nbins = t->nbins;
	err = target_charge(copy, user, false) ?: target_alloc_regions(copy, t->nregions);
	if (err) {
		target_free(copy);
		return err;
	}
	for (uint32_t i = 0; i < t->nregions; i++) {
		copy->region[i] = t->region[i];
		copy->region[i].first -= t->counter_first;
	}
	*out = copy;
	return 0;
}

/* The same as target_check_message() for a region that was read from the maps. */
static int target_check_region(const struct target *t, uint32_t i)
{
	const struct profil_region *r = &t->region[i], *owner;
	uint64_t end = (uint64_t)t->counter_first + t->ncounters;

	if (r->owner > i)
		return -EINVAL;
	owner = &t->region[r->owner];
	if (owner->owner != r->owner || owner->first != r->first || owner->x.nbins != r->x.nbins)
		return -EINVAL;
	if (!t->ncounters) /* PROFIL_START_PCS */
		return 0;
	if (r->first % PROFIL_BLOCK_COUNTERS || r->first < t->counter_first ||
	    r->first + profil_counters_for(r->x.nbins) > end)
		return -EINVAL;
	return 0;
}

int target_check(const struct target *t)
{
	uint64_t nbins = 0;

	if (t->nregions > PROFIL_TARGET_REGIONS || t->counter_first % PROFIL_BLOCK_COUNTERS ||
	    t->ncounters > (uint64_t)PROFIL_MAX_CHUNKS * PROFIL_CHUNK_COUNTERS)
		return -EINVAL;
	for (uint32_t i = 0; i < t->nregions; i++) {
		if (target_check_region(t, i))
			return -EINVAL;
		nbins += t->region[i].owner == i ? t->region[i].x.nbins : 0;
	}
	return nbins == t->nbins ? 0 : -EINVAL;
}

uint32_t target_bin(const struct target *t, uint64_t pc, uint32_t *owner)
{
	size_t low = COUNT_WHILE(t->nregions, i, t->region[i].lo <= pc);

	if (!low)
		return PROFIL_NO_BIN;
	*owner = t->region[low - 1].owner;
	return profil_bin(&t->region[low - 1].x, pc);
}

struct target *target_free(struct target *t)
{
	if (t) {
		target_charges_give(&t->charges);
		free(t->region);
	}
	free(t);
	return NULL;
}
