/* target.c - one address space that is being counted, with its regions and counters */
#include <errno.h>
#include <stdlib.h>

#include "core/scope.h"
#include "target.h"

/*
 * What a client says is checked where it could reach beyond its own counters: a piece must lie in
 * order and agree with the first piece of its buffer. Its arithmetic may be nonsense; profil_bin()
 * never returns a bin that is not there.
 */
static int check_region(const struct profil_msg_region *r, uint32_t i)
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

/* With @n regions of zeros; NULL: ENOMEM. */
static struct target *alloc(struct session *session, pid_t tgid, uint32_t n)
{
	struct target *t = calloc(1, sizeof(*t));

	if (t)
		t->region = calloc(n ? n : 1, sizeof(*t->region));
	if (!t || !t->region)
		return target_free(t);
	t->session = session;
	t->ledger = &t->own;
	t->tgid = tgid;
	t->nregions = n;
	return t;
}

int target_new(struct target **out, struct session *session, pid_t tgid,
	       const struct profil_msg_region *region, uint32_t n)
{
	struct target *t = alloc(session, tgid, n);

	if (!t)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct profil_region *r = &t->region[i];

		if (check_region(region, i)) {
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

int target_copy(struct target **out, struct session *session, pid_t tgid, const struct target *t)
{
	struct target *copy = alloc(session, tgid, t->nregions);

	if (!copy)
		return -ENOMEM;
	copy->period_ns = t->period_ns;
	copy->flags = t->flags;
	copy->ncounters = t->ncounters;
	copy->nbins = t->nbins;
	for (uint32_t i = 0; i < t->nregions; i++) {
		copy->region[i] = t->region[i];
		copy->region[i].first -= t->counter_first;
	}
	*out = copy;
	return 0;
}

static bool begins_at_bin_0(const struct profil_region *r)
{
	return r->lo == r->x.base;
}

bool target_searched(const struct target *t)
{
	return t->nregions > 1 || (t->nregions && !begins_at_bin_0(t->region));
}

struct profil_xform target_near(const struct target *t)
{
	const struct profil_region *r = t->region;
	struct profil_xform near = { 0 };

	if (!t->nregions || !begins_at_bin_0(r))
		return near;
	near = r->x;
	if (t->nregions > 1 && r[1].lo - r->lo < near.span)
		near.span = r[1].lo - r->lo;
	return near;
}

/* The same for what a daemon has made of it, in the numbers of the maps. */
static int check_held(const struct target *t, uint32_t i)
{
	const struct profil_region *r = &t->region[i], *owner;
	uint64_t end = (uint64_t)t->counter_first + t->ncounters;

	if (r->owner > i)
		return -EINVAL;
	owner = &t->region[r->owner];
	if (owner->owner != r->owner || owner->first != r->first || owner->x.nbins != r->x.nbins)
		return -EINVAL;
	if (!t->ncounters) /* pcs are stored as they are */
		return 0;
	if (r->first % PROFIL_GROUP_COUNTERS || r->first < t->counter_first ||
	    r->first + profil_counters_for(r->x.nbins) > end)
		return -EINVAL;
	return 0;
}

int target_check(const struct target *t)
{
	uint64_t nbins = 0;

	if (t->nregions > PROFIL_TARGET_REGIONS || t->counter_first % PROFIL_GROUP_COUNTERS ||
	    t->ncounters > (uint64_t)PROFIL_MAX_CHUNKS * PROFIL_CHUNK_COUNTERS)
		return -EINVAL;
	for (uint32_t i = 0; i < t->nregions; i++) {
		if (check_held(t, i))
			return -EINVAL;
		nbins += t->region[i].owner == i ? t->region[i].x.nbins : 0;
	}
	return nbins == t->nbins ? 0 : -EINVAL;
}

uint32_t target_bin(const struct target *t, uint64_t pc, uint32_t *owner)
{
	uint32_t low = 0, high = t->nregions;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (t->region[middle].lo <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return PROFIL_NO_BIN;
	*owner = t->region[low - 1].owner;
	return profil_bin(&t->region[low - 1].x, pc);
}

struct target *target_free(struct target *t)
{
	if (t)
		free(t->region);
	free(t);
	return NULL;
}
