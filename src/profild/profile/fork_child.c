/* fork_child.c - binds fork children at their first sample; counts samples that arrive as pcs
 *
 * A child is unbound at first: its entry in the process table names its parent's target, and the
 * kernel sends its samples as pcs. The first of them gives it a profile, and a target with counters
 * of its own, to which its entry is moved. Where the counters' chunks have to be made first, which
 * takes an RCU grace period, the profile waits in state STARTING on d->unborn with a reference to
 * its parent, and holds the pcs that arrive meanwhile. If it comes to nothing, as when the child
 * has ended or exec'd since, they are lost in the parent's profile.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "own_profile.h"
#include "sampler.h"

static bool own_profile_append_pc(struct own_profile *own, uint64_t pc)
{
	uint64_t *more;

	if (!(own->npcs & (own->npcs - 1))) {
		more = reallocarray(own->pcs, own->npcs ? 2 * own->npcs : 1, sizeof(*more));
		if (!more)
			return false;
		own->pcs = more;
	}
	own->pcs[own->npcs++] = pc;
	return true;
}

/* Keeps a pc for the buffer. Returns false if it will not be written, or has no room there. */
static bool own_profile_keep_pc(struct own_profile *own, uint64_t pc)
{
	const struct target *t = own->target;
	uint64_t room = t->region[0].x.nbins, used = t->ledger->pcs + t->pcs_in_flight + own->npcs;

	if (own->state == OWN_PROFILE_OVER || own->state == OWN_PROFILE_GIVEN_UP)
		return false;
	return used < room && own_profile_append_pc(own, pc);
}

/* Counts a sample that arrived as a pc, as the kernel would have counted it. */
static void own_profile_count_pc(struct own_profile *own, uint64_t pc)
{
	struct sampler *sampler = own->daemon->sampler;
	struct target *t = own->target;
	const uint32_t one = 1;
	uint32_t owner, bin;

	t->ledger->events++;
	if (own->flags & PROFIL_START_PCS) {
		t->ledger->dropped += !own_profile_keep_pc(own, pc);
		return;
	}
	bin = target_bin(t, pc, &owner);
	if (bin == PROFIL_NO_BIN) {
		t->ledger->unmatched++;
		return;
	}
	t->ledger->events--; /* count() adds it to the kernel's total */
	sampler->ops->count(sampler, t, owner, bin, one);
}

/* --- a child that waits for counters ---------------------------------------------------------- */

#define HELD_PCS 1024 /* of one thread at 1000 Hz: a second; a grace period takes 50 ms at most */

static struct own_profile *unborn_find(const struct own_profile *parent, pid_t tgid,
				       uint32_t generation)
{
	struct own_profile *own = parent->daemon->unborn;

	while (own && (own->parent != parent || own->tgid != tgid || own->generation != generation))
		own = own->next_unborn;
	return own;
}

static void unborn_add(struct own_profile *own, struct own_profile *parent, uint32_t generation)
{
	own->parent = own_profile_ref(parent);
	own->generation = generation;
	own->next_unborn = own->daemon->unborn;
	own->daemon->unborn = own;
}

/* Returns its parent, with the reference. */
static struct own_profile *unborn_remove(struct own_profile *own)
{
	struct own_profile **place = &own->daemon->unborn;

	while (*place != own)
		place = &(*place)->next_unborn;
	*place = own->next_unborn;
	return steal(own->parent);
}

static void own_profile_lose(struct own_profile *own, uint64_t n)
{
	if (!own->target)
		return;
	own->target->ledger->events += n;
	own->target->ledger->dropped += n;
}

static void unborn_hold_pc(struct own_profile *own, uint64_t pc)
{
	if (own->npcs == HELD_PCS || !own_profile_append_pc(own, pc))
		own_profile_lose(own->parent, 1);
}

void own_profile_unborn_end(struct own_profile *own)
{
	struct own_profile *parent = unborn_remove(own);

	own_profile_lose(parent, own->npcs);
	own->npcs = 0;
	own_profile_unref(parent);
}

/* The child cannot be followed, and counts nowhere. */
static void unborn_leave_parent(struct own_profile *parent, pid_t tgid)
{
	struct sampler *sampler = parent->daemon->sampler;

	if (parent->target && parent->state != OWN_PROFILE_ENDING &&
	    parent->state != OWN_PROFILE_ENDED)
		sampler->ops->leave(sampler, parent->target, tgid);
}

/* There are counters: moves the child from its parent's target to its own. */
static int unborn_bear(struct own_profile *own)
{
	struct sampler *sampler = own->daemon->sampler;
	struct own_profile *parent = own->parent;
	uint64_t *pc;
	uint32_t n;
	int err = (parent->target ? 0 : -ESRCH)
			  ?: sampler->ops->start(sampler, own->target, parent->target,
						 own->generation);

	if (err) {
		own_profile_end(own);
		return err;
	}
	own_profile_unref(unborn_remove(own));
	own_profile_reopen(own, own->tgid);
	pc = steal(own->pcs);
	n = own->npcs;
	own->npcs = 0;
	for (uint32_t i = 0; i < n; i++)
		own_profile_count_pc(own, pc[i]);
	free(pc);
	return 0;
}

static void unborn_reserved(void *arg, int err)
{
	struct own_profile *own = arg, *parent = own_profile_ref(own->parent);
	pid_t tgid = own->tgid;

	if (!err && own->state == OWN_PROFILE_ENDED)
		err = -ESRCH;
	if (err)
		own_profile_end(own);
	else
		err = unborn_bear(own);
	if (err)
		unborn_leave_parent(parent, tgid);
	own_profile_unref(parent);
}

/* Gives the unbound child @tgid a profile like its parent's, with counters of its own, at once or
 * when there are counters. */
static int unborn_adopt(struct own_profile *parent, pid_t tgid, uint32_t generation)
{
	struct profild *d = parent->daemon;
	struct own_profile *own = NULL;
	int err = own_profile_new(&own, d, tgid, parent->user, false);

	if (err)
		return err;
	own_profile_link(own);
	unborn_add(own, parent, generation);
	own->flags = parent->flags;
	own->width = parent->width;
	own->cap = parent->cap;
	own->period_ns = parent->period_ns;
	own->cookie_addr = parent->cookie_addr;
	memcpy(own->cookie, parent->cookie, sizeof(own->cookie));
	own->image = parent->image;
	err = target_copy(&own->target, own, tgid, parent->target, own->user)
		      ?: own_profile_give_memory(own)
		      ?: d->sampler->ops->reserve(d->sampler, own->target, unborn_reserved, own);
	if (err == -EINPROGRESS)
		return 0;
	if (!err)
		return unborn_bear(own);
	own_profile_end(own);
	return err;
}

/* --- samples that arrive as pcs --------------------------------------------------------------- */

void own_profile_pc(struct own_profile *own, pid_t tgid, uint32_t generation, uint64_t pc)
{
	struct sampler *sampler = own->daemon->sampler;
	struct own_profile *child;
	struct target *t;
	uint32_t now = 0;
	bool unbound;

	if (own->state == OWN_PROFILE_ENDING || own->state == OWN_PROFILE_ENDED) {
		own_profile_lose(own, 1);
		return;
	}
	if (own->flags & PROFIL_START_PCS && tgid == own->tgid) {
		own_profile_count_pc(own, pc);
		return;
	}
	t = sampler->ops->find(sampler, tgid, &unbound, &now);
	if (t && now != generation) { /* the child has ended, and another process has its pid */
		own_profile_lose(own, 1);
		return;
	}
	if (t && unbound) {
		child = unborn_find(own, tgid, generation);
		if (!child && !unborn_adopt(own, tgid, generation))
			child = unborn_find(own, tgid, generation);
		if (child) {
			unborn_hold_pc(child, pc);
			return;
		}
		t = sampler->ops->find(sampler, tgid, &unbound, &now);
	}
	if (t && !unbound && now == generation) {
		own_profile_count_pc(t->profile, pc);
		return;
	}
	/* The child has ended, or there is no room for its profile: the sample is lost. */
	own_profile_lose(own, 1);
	sampler->ops->leave(sampler, own->target, tgid);
}
