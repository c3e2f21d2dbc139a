/* own_lifecycle.c - the life cycle of a process's own profile: START, SYNC, STOP, recovery */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"
#include "buffer_writer.h"
#include "own_profile.h"
#include "sampler.h"

/* Time for samples in flight after a stop: they take a microsecond, or more on a stolen CPU. */
#define SETTLE_NS 2000000

/* One request, which takes several turns of the event loop. */
struct steps {
	struct own_profile *own;
	struct own_profile *old; /* the profile that @own replaces; NULL: none */
	pid_t tgid;
	uint32_t generation;
	uint64_t lender;
	bool check; /* that the buffers are writable */
	uint64_t until_ns;
	own_profile_done *done;
	void *arg;
};

static void steps_end(struct steps *p, int err)
{
	if (p->done)
		p->done(p->arg, err, p->own);
	if (p->own)
		own_profile_unref(p->own);
	if (p->old)
		own_profile_unref(p->old);
	free(p);
}

static struct work work_of(const struct own_profile *own, enum work_kind kind, pid_t pid)
{
	struct work w = { .kind = kind,
			  .slot = own->memory.slot,
			  .pid = pid,
			  .image = own->image,
			  .cookie_addr = own->cookie_addr };

	memcpy(w.cookie, own->cookie, sizeof(w.cookie));
	return w;
}

int own_profile_find(struct own_profile **out, struct profild *d, pid_t tgid, bool *unbound,
		     uint32_t *generation)
{
	struct target *t = d->sampler->ops->find(d->sampler, tgid, unbound, generation);

	*out = NULL;
	if (!t || t->profile->state == OWN_PROFILE_ENDED)
		return 0;
	if (t->profile->state == OWN_PROFILE_STARTING)
		return -EBUSY;
	*out = t->profile;
	return 0;
}

uint64_t own_profile_lender(struct profild *d, pid_t tgid, const struct lane *lane)
{
	struct own_profile *own;
	bool unbound = false;
	uint32_t generation;

	if (own_profile_find(&own, d, tgid, &unbound, &generation) || !own || unbound)
		return 0;
	if (own->state != OWN_PROFILE_ON || own->tgid != tgid || own->memory.lane != lane ||
	    remote_lost(&own->memory))
		return 0;
	return own->id;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* The last counts have been written. Samples in flight get SETTLE_NS to arrive. */
static void on_last(void *arg, int err, struct own_profile *own)
{
	struct sampler *sampler = own->daemon->sampler;
	struct steps *p = arg;

	if (own->state == OWN_PROFILE_ENDING && own->target &&
	    !sampler->ops->settled(sampler, own->target, false) && now_ns() < p->until_ns &&
	    !writer_wait(own, on_last, p))
		return;
	if (own->target)
		sampler->ops->settled(sampler, own->target, true);
	own_profile_end(own);
	steps_end(p, 0);
}

int own_profile_finish(struct own_profile *own, own_profile_done *done, void *arg)
{
	struct steps *p;
	int err;

	if (own->state == OWN_PROFILE_ENDING || own->state == OWN_PROFILE_ENDED)
		return -EBUSY;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	own_profile_stop(own);
	if (own->state == OWN_PROFILE_ON)
		own->state = OWN_PROFILE_ENDING;
	*p = (struct steps){ .own = own_profile_ref(own),
			     .until_ns = now_ns() + SETTLE_NS,
			     .done = done,
			     .arg = arg };
	if (own->state != OWN_PROFILE_ENDING) {
		/* Nothing may be written any more: end it at once. */
		own_profile_end(own);
		err = writer_wait(own, on_last, p);
	} else {
		err = writer_wait(own, on_last, p);
	}
	if (err) {
		own_profile_unref(own);
		free(p);
		own_profile_end(own);
	}
	return err;
}

int own_profile_leave(struct own_profile *own, pid_t tgid, own_profile_done *done, void *arg)
{
	struct sampler *sampler = own->daemon->sampler;
	pid_t other;

	if (own->state == OWN_PROFILE_ENDING || own->state == OWN_PROFILE_ENDED)
		return writer_wait(own, done, arg);
	other = sampler->ops->other(sampler, own->target, tgid);
	/* The memory stays open; a process that shares it is the leader from now on. */
	if (own->tgid == tgid)
		own->tgid = other;
	if (!sampler->ops->leave(sampler, own->target, tgid))
		return own_profile_finish(own, done, arg);
	return writer_wait(own, done, arg);
}

void own_profile_check(struct own_profile *own)
{
	struct sampler *sampler = own->daemon->sampler;

	if (own->state != OWN_PROFILE_ENDED && own->state != OWN_PROFILE_ENDING &&
	    sampler->ops->ended(sampler, own->target))
		own_profile_end(own);
}

void own_profile_over(struct own_profile *own)
{
	struct sampler *sampler = own->daemon->sampler;
	bool finishing = own->state == OWN_PROFILE_ENDING;

	if (own->state == OWN_PROFILE_ENDED || own->state == OWN_PROFILE_OVER)
		return;
	own->state = OWN_PROFILE_OVER;
	own->tgid = 0;
	if (!finishing && !sampler->ops->orphan(sampler, own->target))
		own_profile_end(own);
}

int own_profile_sync(struct own_profile *own, own_profile_done *done, void *arg)
{
	return writer_wait(own, done, arg);
}

/* --- opening a memory ------------------------------------------------------------------------- */

static void on_reopened(void *arg, const struct work_answer *a, union work_area *area)
{
	struct own_profile *own = arg;

	if (own->state == OWN_PROFILE_OPENING && !a->err) {
		own->state = OWN_PROFILE_ON;
		writer_queue(own);
		writer_kick(own);
	} else if (own->state == OWN_PROFILE_OPENING) {
		if (a->err == -ETIMEDOUT || a->err == -EAGAIN)
			own->state = OWN_PROFILE_GIVEN_UP;
		else
			own_profile_over(own);
		writer_forget(own);
	}
	own_profile_unref(own);
}

void own_profile_reopen(struct own_profile *own, pid_t tgid)
{
	struct work w;

	own->tgid = tgid;
	own->state = OWN_PROFILE_OPENING;
	own_profile_renew_id(own);
	if (remote_lost(&own->memory)) {
		struct lane *lane = lane_ref(own->memory.lane);

		remote_fini(&own->memory);
		if (remote_init(&own->memory, lane)) {
			own->state = OWN_PROFILE_GIVEN_UP;
			lane_unref(lane);
			return;
		}
		lane_unref(lane);
	}
	w = work_of(own, WORK_ADOPT, tgid);
	if (!lane_submit(own->memory.lane, &w, NULL, on_reopened, own_profile_ref(own))) {
		own_profile_unref(own);
		own->state = OWN_PROFILE_GIVEN_UP;
	}
}

void own_profiles_lost(struct profild *d, const struct user *u, bool late)
{
	struct own_profile *own, *next;

	for (own = d->profiles; own; own = next) {
		next = own->next;
		if (own->user != u || own->state == OWN_PROFILE_STARTING)
			continue;
		if (own->state == OWN_PROFILE_ON && !late) {
			own_profile_reopen(own, own->tgid);
		} else if (own->state == OWN_PROFILE_ON || own->state == OWN_PROFILE_OPENING) {
			own->state = OWN_PROFILE_GIVEN_UP;
			writer_forget(own);
		}
	}
}

int own_profile_give_memory(struct own_profile *own)
{
	struct lane *lane = NULL;
	int err = lane_get(&lane, own->daemon->lanes, own->user)
		      ?: remote_init(&own->memory, lane)
		      ?: writer_join(own, lane);

	lane_unref(lane);
	return err;
}

/* --- START ------------------------------------------------------------------------------------ */

static int check_request(const struct own_profile_request *r)
{
	uint32_t max = r->width == 2 ? UINT16_MAX : UINT32_MAX;

	if (r->cookie_addr % 8)
		return -EINVAL;
	if (r->flags & PROFIL_START_PCS)
		return r->width == 8 && r->nregions == 1 ? 0 : -EINVAL;
	if ((r->width != 2 && r->width != 4) || !r->cap || r->cap > max)
		return -EINVAL;
	return 0;
}

static int prepare_target(struct own_profile *own, const struct own_profile_request *r)
{
	struct target *t;
	int err = target_new(&t, own, r->tgid, r->region, r->nregions);

	if (err)
		return err;
	own->target = t;
	t->period_ns = own->period_ns;
	t->flags = PROFIL_TARGET_INHERIT;
	if (!user_is_root(own->user))
		t->flags |= PROFIL_TARGET_UNPRIVILEGED;
	if (own->flags & PROFIL_START_PCS) {
		t->flags |= PROFIL_TARGET_RAW;
		t->region[0].x.span = 0; /* no pc has a bin: each one is sent as an event */
		t->ncounters = 0;
	}
	return target_charge(t, own->user, false);
}

/*
 * Makes the profile, without any visible effect so far. One that @replaces another needs no room
 * within the user's limit of profiles.
 */
static int prepare(struct own_profile **out, struct profild *d, const struct own_profile_request *r,
		   bool replaces)
{
	struct own_profile *own;
	int err = check_request(r);

	if (!err && remote_lost(r->memory))
		err = -ESRCH;
	err = err ?: own_profile_new(&own, d, r->tgid, r->user, replaces);
	if (err)
		return err;
	own->flags = r->flags;
	own->width = r->width;
	own->cap = r->cap;
	own->cookie_addr = r->cookie_addr;
	memcpy(own->cookie, r->cookie, sizeof(own->cookie));
	own->period_ns =
		r->flags & PROFIL_START_FAST ? d->config.fast_period_ns : d->config.period_ns;
	own->image = r->memory->image;
	err = prepare_target(own, r) ?: writer_join(own, r->memory->lane);
	if (err) {
		own_profile_unref(own);
		return err;
	}
	remote_move(&own->memory, r->memory);
	*out = own;
	return 0;
}

/* Ends the profiles of @u whose processes have ended, before the next pass finds them. */
static void end_the_ended(struct profild *d, const struct user *u)
{
	struct own_profile *own, *next;

	for (own = d->profiles; own; own = next) {
		next = own->next;
		if (own->user == u)
			own_profile_check(own);
	}
}

static void start_failed(struct steps *p, int err)
{
	own_profile_end(p->own);
	own_profile_unref(steal(p->own));
	steps_end(p, err);
}

/* The new profile is on, and the old one's last counts are in its buffer. */
static void on_started(void *arg, int err, struct own_profile *own)
{
	steps_end(arg, err);
}

static void on_left(void *arg, int err, struct own_profile *old)
{
	struct steps *p = arg;

	if (writer_wait(p->own, on_started, p))
		steps_end(p, 0);
}

/*
 * The worker has verified the memory. A process without an old profile has been in the process
 * table since before the check, so an exec since then has removed it. A process with an old profile
 * is moved to the new target now, which fails if it has exec'd since.
 */
static void on_verified(void *arg, const struct work_answer *a, union work_area *area)
{
	struct steps *p = arg;
	struct own_profile *own = p->own;
	struct sampler *sampler = own->daemon->sampler;
	int err = a->err;

	if (!err && own->state == OWN_PROFILE_ENDED)
		err = -ESRCH;
	if (!err && p->old)
		err = sampler->ops->start(sampler, own->target, p->old->target, p->generation);
	if (err) {
		start_failed(p, err);
		return;
	}
	own->state = OWN_PROFILE_ON;
	if (p->old && p->old->state != OWN_PROFILE_ENDED &&
	    own_profile_leave(p->old, p->tgid, on_left, p) == 0)
		return;
	on_left(p, 0, p->old);
}

/*
 * Called when the task is sent, so the slots are those of the present worker. PROFIL_START_CHECK:
 * the worker checks that the buffers are writable.
 */
static bool fill_verify(void *arg, struct work *work, union work_area *area)
{
	struct steps *p = arg;
	const struct target *t = p->own->target;

	if (p->lender && remote_lost(&p->old->memory))
		work->from = UINT32_MAX;
	else if (p->lender)
		work->from = p->old->memory.slot;
	work->n = 0;
	for (uint32_t i = 0; p->check && t && i < t->nregions; i++) {
		const struct profil_region *r = &t->region[i];

		if (r->owner == i)
			area->range[work->n++] =
				(struct work_range){ r->addr,
						     (uint64_t)r->x.nbins * p->own->width };
	}
	return true;
}

/*
 * Starts the new profile, for which there is room. The old one is looked up only now: another
 * thread of the process may have changed it while counters were created.
 */
static int begin(struct steps *p)
{
	struct own_profile *own = p->own, *old;
	struct sampler *sampler = own->daemon->sampler;
	struct work w;
	bool unbound;
	int err = own_profile_find(&old, own->daemon, p->tgid, &unbound, &p->generation);

	if (!err && p->lender && (!old || old->id != p->lender))
		err = -ESTALE;
	if (err)
		return err;
	if (old)
		p->old = own_profile_ref(old);
	else
		err = sampler->ops->start(sampler, own->target, NULL, 0);
	if (err)
		return err;
	w = work_of(own, WORK_VERIFY, p->tgid);
	w.flags = p->lender ? WORK_COPY : 0;
	return lane_submit(own->memory.lane, &w, fill_verify, on_verified, p) ? 0 : -ENOMEM;
}

static void on_reserved(void *arg, int err)
{
	struct steps *p = arg;

	if (!err && p->own->state == OWN_PROFILE_ENDED)
		err = -ESRCH;
	err = err ?: begin(p);
	if (err)
		start_failed(p, err);
}

/*
 * Moving the process's entry in the process table is the last step that can fail. Until then the
 * old profile is unchanged.
 */
int own_profile_start(struct profild *d, const struct own_profile_request *r,
		      own_profile_done *done, void *arg)
{
	struct own_profile *own = NULL, *old;
	struct steps *p;
	bool unbound;
	uint32_t generation = 0;
	int err = own_profile_find(&old, d, r->tgid, &unbound, &generation);

	if (err)
		return err;
	err = prepare(&own, d, r, old != NULL);
	if (err == -EAGAIN || err == -ENOMEM) {
		end_the_ended(d, r->user);
		err = own_profile_find(&old, d, r->tgid, &unbound, &generation)
			      ?: prepare(&own, d, r, old != NULL);
	}
	if (err)
		return err;
	own_profile_link(own);
	p = calloc(1, sizeof(*p));
	if (!p) {
		own_profile_end(own);
		return -ENOMEM;
	}
	*p = (struct steps){ .own = own_profile_ref(own),
			     .tgid = r->tgid,
			     .lender = r->lender,
			     .check = r->flags & PROFIL_START_CHECK,
			     .arg = arg };
	err = d->sampler->ops->reserve(d->sampler, own->target, on_reserved, p) ?: begin(p);
	if (err && err != -EINPROGRESS) {
		start_failed(p, err);
		return err;
	}
	p->done = done;
	return 0;
}

/* --- after a restart -------------------------------------------------------------------------- */

int own_profile_recover(struct profild *d, struct target *t, const struct profil_owner *owner)
{
	struct own_profile_request r = { .tgid = (pid_t)owner->tgid,
					 .cookie_addr = owner->cookie_addr,
					 .flags = owner->flags,
					 .width = owner->width,
					 .cap = owner->cap,
					 .nregions = t->nregions };
	struct user *user = NULL;
	struct own_profile *own = NULL;
	int err = check_request(&r);

	if (r.flags & PROFIL_START_PCS && t->ncounters)
		err = -EINVAL;
	err = err
		      ?: user_get(&user, d->quota, owner->uid, owner->root)
		      ?: own_profile_new(&own, d, r.tgid, user, true);
	user_unref(user);
	if (err)
		return err;
	own->flags = owner->flags;
	own->width = owner->width;
	own->cap = owner->cap;
	own->period_ns = t->period_ns;
	own->cookie_addr = owner->cookie_addr;
	memcpy(own->cookie, owner->cookie, sizeof(own->cookie));
	own->image = owner->image;
	err = own_profile_give_memory(own);
	if (err) {
		own_profile_unref(own);
		return err;
	}
	target_charge(t, own->user, true);
	t->profile = own;
	own->target = t;
	own_profile_link(own);
	if (own->tgid)
		own_profile_reopen(own, own->tgid);
	else
		own->state = OWN_PROFILE_OVER; /* unbound children may be left */
	return 0;
}
