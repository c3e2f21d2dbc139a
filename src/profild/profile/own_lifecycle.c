/* own_lifecycle.c - the life cycle of a process's own profile: START, SYNC, STOP, recovery
 *
 * State is in two kinds of objects. A profile has a state (own_profile.h), and numbers of passes
 * over its counters. A request is a client's START, STOP or SYNC, with a phase: what it waits for.
 * Callbacks of other layers (the sampler's reservation, a worker's answer, a batch's outcome) only
 * store their result in the object and enable d->on_dirty. From the event loop, dirty_dispatch()
 * then has own_profile_dispatch() examine the ENDING profiles that have changed, and
 * own_request_dispatch() all requests, of which a connection has one at most. Neither runs inside a
 * callback.
 *
 * A START from its last message to the reply:
 *
 *	request.c	finds the profile that the process has now (@old), checks the client's rights
 *	start_prepare()	makes the profile, STARTING: charges, regions, writer. Nothing is visible yet
 *	RESERVE		the sampler reserves counters. No wait where their chunks exist; else an RCU
 *			grace period, during which another thread of the process may change @old
 *	start_verify()	looks @old up again. Without one, the process enters the process table now, so
 *			that an exec during the check is seen. Sends WORK_VERIFY to the user's worker
 *	VERIFY		the worker reads the cookie through the memory that it has open
 *	start_enter()	moves the process's entry from @old's target: the last step that can fail.
 *			The profile is ON, and the process leaves @old, which may be its end
 *	LEAVE		the last counts of @old are being written
 *	PASS		a pass over the new counters, where the sampler has counts at once: a replay.
 *			Then the reply
 *
 * A STOP or a SYNC has only PASS. After an error the old profile is as it was, and the new one ends
 * before the reply, so that its charges are free for the client's next attempt. If the client closes
 * its connection, the request is carried out without a reply.
 *
 * Memory can run out in start_prepare() and in reserve(), which is the START's -ENOMEM. All that
 * comes later needs none: waiting is a number, the request is a member of its client, and tasks are
 * members of the profile and of the writer. So neither a STOP nor an end can fail.
 *
 * A profile ends in own_profile_finish(): it is stopped in the kernel and ENDING, until a pass has
 * been served after which no sample is in flight, or SETTLE_NS have passed. The daemon's end uses it
 * without a request.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "buffer_writer.h"
#include "own_profile.h"
#include "sampler.h"

/* Time for samples in flight after a stop: they take a microsecond, or more on a stolen CPU. */
#define SETTLE_NS 2000000

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

/* Ends @own; samples that are in flight are lost. */
static void own_profile_close(struct own_profile *own)
{
	struct sampler *sampler = own->daemon->sampler;

	if (own->target)
		sampler->ops->settled(sampler, own->target, true);
	own_profile_end(own);
}

/* Ends an ENDING profile whose last counts have been written. */
static void own_profile_dispatch(struct own_profile *own)
{
	struct sampler *sampler = own->daemon->sampler;

	if (own->state != OWN_PROFILE_ENDING || own->served < own->asked)
		return;
	if (!sampler->ops->settled(sampler, own->target, false) && now_ns() < own->settle_until_ns)
		writer_pass(own);
	else
		own_profile_close(own);
}

void own_profile_finish(struct own_profile *own)
{
	if (own->state == OWN_PROFILE_ENDING || own->state == OWN_PROFILE_ENDED)
		return;
	own_profile_stop(own);
	if (own->state != OWN_PROFILE_ON) { /* nothing may be written any more */
		own_profile_close(own);
		return;
	}
	own->state = OWN_PROFILE_ENDING;
	own->settle_until_ns = now_ns() + SETTLE_NS;
	writer_pass(own);
}

uint64_t own_profile_leave(struct own_profile *own, pid_t tgid)
{
	struct sampler *sampler = own->daemon->sampler;

	if (own->state == OWN_PROFILE_ENDING || own->state == OWN_PROFILE_ENDED)
		return own->asked;
	/* The memory stays open; a process that shares it is the leader from now on. */
	if (own->tgid == tgid)
		own->tgid = sampler->ops->other(sampler, own->target, tgid);
	if (sampler->ops->leave(sampler, own->target, tgid))
		return writer_pass(own);
	own_profile_finish(own);
	return own->asked;
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

	if (own->state == OWN_PROFILE_ENDED || own->state == OWN_PROFILE_OVER)
		return;
	if (own->state == OWN_PROFILE_ENDING) {
		own_profile_close(own);
		return;
	}
	own->state = OWN_PROFILE_OVER;
	own->tgid = 0;
	own_profile_mark(own);
	if (!sampler->ops->orphan(sampler, own->target))
		own_profile_end(own);
}

void own_profile_give_up(struct own_profile *own)
{
	own->state = OWN_PROFILE_GIVEN_UP;
	own_profile_mark(own);
}

/* --- passes ----------------------------------------------------------------------------------- */

/*
 * True if pass @pass is served: what was counted before it began is in the buffer, or lost. An
 * ENDING profile has samples in flight. One that has ended may be in a batch still.
 */
static bool own_profile_served(const struct own_profile *own, uint64_t pass)
{
	switch (own->state) {
	case OWN_PROFILE_ENDING:
		return false;
	case OWN_PROFILE_GIVEN_UP:
	case OWN_PROFILE_OVER:
	case OWN_PROFILE_ENDED:
		return !own->writing;
	default:
		return own->served >= pass;
	}
}

bool own_profiles_served(const struct profild *d)
{
	for (const struct own_profile *own = d->profiles; own; own = own->next) {
		if (!own_profile_served(own, own->asked))
			return false;
	}
	return true;
}

void own_profile_outcome(struct own_profile *own, enum writer_outcome outcome, pid_t heir)
{
	switch (outcome) {
	case WRITER_OVER:
		own_profile_over(own);
		break;
	case WRITER_PUT_BACK:
		own_profile_reopen(own, heir);
		break;
	case WRITER_WRITTEN:
	case WRITER_WORKER_LOST:
		own_profile_check(own);
		break;
	}
}

/* --- START ------------------------------------------------------------------------------------ */

static int start_check(const struct own_profile_params *p)
{
	uint32_t max = p->width == 2 ? UINT16_MAX : UINT32_MAX;

	if (p->cookie_addr % 8)
		return -EINVAL;
	if (p->flags & PROFIL_START_PCS)
		return p->width == 8 && p->nregions == 1 ? 0 : -EINVAL;
	if ((p->width != 2 && p->width != 4) || !p->cap || p->cap > max)
		return -EINVAL;
	return 0;
}

static void own_profile_set(struct own_profile *own, const struct own_profile_params *p)
{
	own->flags = p->flags;
	own->width = p->width;
	own->cap = p->cap;
	own->cookie_addr = p->cookie_addr;
	memcpy(own->cookie, p->cookie, sizeof(own->cookie));
}

/*
 * Makes the profile, without any visible effect so far. One that @replaces another needs no room
 * within the user's limit of profiles.
 */
static int start_prepare(struct own_profile **out, struct profild *d,
			 const struct own_profile_params *p, bool replaces)
{
	__cleanup(own_profile_unrefp) struct own_profile *own = NULL;
	struct target *t;
	int err = start_check(p);

	if (err)
		return err;
	if (remote_lost(p->memory))
		return -ESRCH;
	err = own_profile_new(&own, d, p->tgid, p->user, replaces);
	if (err)
		return err;
	own_profile_set(own, p);
	own->period_ns =
		p->flags & PROFIL_START_FAST ? d->config.fast_period_ns : d->config.period_ns;
	own->image = p->memory->image;
	err = target_new(&own->target, own, p->tgid, p->region, p->nregions);
	if (err)
		return err;
	t = own->target;
	t->period_ns = own->period_ns;
	t->flags = PROFIL_TARGET_INHERIT;
	if (!user_is_root(own->user))
		t->flags |= PROFIL_TARGET_UNPRIVILEGED;
	if (own->flags & PROFIL_START_PCS) {
		t->flags |= PROFIL_TARGET_RAW;
		t->region[0].x.span = 0; /* no pc has a bin: each one is sent as an event */
		t->ncounters = 0;
	}
	err = target_charge(t, own->user, false)
		      ?: writer_join(own, p->memory->lane, own_profile_outcome);
	if (err)
		return err;
	remote_move(&own->memory, p->memory);
	own_profile_link(own);
	*out = steal(own);
	return 0;
}

/* Ends the profiles of @u whose processes have ended, before the next pass finds them. */
static void own_profiles_check(struct profild *d, const struct user *u)
{
	struct own_profile *own, *next;

	for (own = d->profiles; own; own = next) {
		next = own->next;
		if (own->user == u)
			own_profile_check(own);
	}
}

/* The sampler or a worker has answered @r. */
static void start_answered(void *arg, int err)
{
	struct own_request *r = arg;

	r->err = err;
	own_profile_mark(r->own);
}

static void start_verified(void *arg, const struct work_answer *a, union work_area *area)
{
	start_answered(arg, a->err);
}

/*
 * Called when the task is sent, so the slots are those of the present worker. PROFIL_START_CHECK:
 * the worker checks that the buffers are writable.
 */
static bool start_fill_verify(void *arg, struct work *work, union work_area *area)
{
	const struct own_request *r = arg;
	const struct own_profile *own = r->own;
	const struct target *t = own->target;

	if (r->lender)
		work->from = remote_lost(&r->old->memory) ? UINT32_MAX : r->old->memory.slot;
	work->n = 0;
	for (uint32_t i = 0; own->flags & PROFIL_START_CHECK && t && i < t->nregions; i++) {
		const struct profil_region *region = &t->region[i];

		if (region->owner == i)
			area->range[work->n++] =
				(struct work_range){ region->addr,
						     (uint64_t)region->x.nbins * own->width };
	}
	return true;
}

/*
 * Has the new profile's memory verified. The old one is looked up only now: another thread of the
 * process may have changed it while counters were created.
 */
static int start_verify(struct own_request *r)
{
	struct own_profile *own = r->own, *old;
	struct sampler *sampler = own->daemon->sampler;
	bool unbound;
	int err;

	if (own->state == OWN_PROFILE_ENDED)
		return -ESRCH;
	err = own_profile_find(&old, own->daemon, own->tgid, &unbound, &r->generation);
	if (err)
		return err;
	if (r->lender && (!old || old->id != r->lender))
		return -ESTALE;
	if (old)
		r->old = own_profile_ref(old);
	else
		err = sampler->ops->start(sampler, own->target, NULL, 0);
	if (err)
		return err;
	own_profile_task(own, WORK_VERIFY, start_verified, r);
	own->task.work.flags = r->lender ? WORK_COPY : 0;
	own->task.prepare = start_fill_verify;
	r->phase = OWN_REQUEST_VERIFY;
	r->err = -EINPROGRESS;
	lane_submit(own->memory.lane, &own->task);
	return 0;
}

/*
 * The worker has verified the memory. A process without an old profile has been in the process
 * table since before the check, so an exec since then has removed it. A process with an old profile
 * is moved to the new target now, which fails if it has exec'd since.
 */
static int start_enter(struct own_request *r)
{
	struct own_profile *own = r->own;
	struct sampler *sampler = own->daemon->sampler;
	int err = own->state == OWN_PROFILE_ENDED ? -ESRCH : 0;

	if (!err && r->old)
		err = sampler->ops->start(sampler, own->target, r->old->target, r->generation);
	if (err)
		return err;
	own->state = OWN_PROFILE_ON;
	if (remote_lost(&own->memory)) /* its worker has ended since the answer */
		own_profile_reopen(own, own->tgid);
	if (r->old)
		r->pass = own_profile_leave(r->old, own->tgid);
	return 0;
}

/* Takes @r off the list; after an error its profile ends. Returns its profile; NULL: it has ended. */
static struct own_profile *own_request_release(struct own_request *r, int err)
{
	struct own_profile *own = steal(r->own), *old = steal(r->old);
	struct own_request **place = &own->daemon->requests;

	while (*place != r)
		place = &(*place)->next;
	*place = r->next;
	if (old)
		own_profile_unref(old);
	if (!err)
		return own;
	own_profile_end(own);
	own_profile_unref(own);
	return NULL;
}

static void own_request_begin(struct own_request *r, struct own_profile *own)
{
	r->own = own_profile_ref(own);
	r->next = own->daemon->requests;
	own->daemon->requests = r;
}

int own_profile_start(struct own_request *r, struct profild *d, const struct own_profile_params *p)
{
	struct own_profile *own, *old;
	bool unbound;
	uint32_t generation;
	int err = start_prepare(&own, d, p, p->replaces);

	if (err == -EAGAIN || err == -ENOMEM) {
		own_profiles_check(d, p->user);
		err = own_profile_find(&old, d, p->tgid, &unbound, &generation)
			      ?: start_prepare(&own, d, p, old != NULL);
	}
	if (err)
		return err;
	r->phase = OWN_REQUEST_RESERVE;
	r->lender = p->lender;
	own_request_begin(r, own);
	r->err = d->sampler->ops->reserve(d->sampler, own->target, start_answered, r);
	if (r->err == -EINPROGRESS)
		return 0;
	err = r->err ?: start_verify(r);
	if (err)
		own_request_release(r, err);
	return err;
}

/* --- requests --------------------------------------------------------------------------------- */

void own_profile_ask(struct own_request *r, struct own_profile *own, pid_t leaves)
{
	r->phase = OWN_REQUEST_PASS;
	r->err = 0;
	own_request_begin(r, own);
	r->pass = leaves ? own_profile_leave(own, leaves) : writer_pass(own);
	if (own_profile_served(own, r->pass))
		own_profile_mark(own);
}

static void own_request_end(struct own_request *r, int err)
{
	struct own_profile *own = own_request_release(r, err);

	r->done(r->arg, err, own);
	if (own)
		own_profile_unref(own);
}

/* Does what is due of @r: all that it can do without waiting. */
static void own_request_dispatch(struct own_request *r)
{
	struct own_profile *own = r->own;
	int err = r->err;

	if (err == -EINPROGRESS)
		return;
	if (r->phase == OWN_REQUEST_RESERVE) {
		err = err ?: start_verify(r);
		if (err)
			own_request_end(r, err);
		return;
	}
	if (r->phase == OWN_REQUEST_VERIFY) {
		err = err ?: start_enter(r);
		if (err) {
			own_request_end(r, err);
			return;
		}
		r->phase = OWN_REQUEST_LEAVE;
	}
	if (r->phase == OWN_REQUEST_LEAVE) {
		if (r->old && !own_profile_served(r->old, r->pass))
			return;
		r->pass = own->daemon->sampler->counts_at_start ? writer_pass(own) : 0;
		r->phase = OWN_REQUEST_PASS;
	}
	if (own_profile_served(own, r->pass))
		own_request_end(r, 0);
}

/* Examines what has changed; see the head of this file. */
static int dirty_dispatch(sd_event_source *source, void *userdata)
{
	struct profild *d = userdata;
	struct own_request *r, *next;

	while (d->dirty) {
		struct own_profile *own = d->dirty;

		d->dirty = own->next_dirty;
		own->dirty = false;
		own_profile_dispatch(own);
		own_profile_unref(own);
	}
	for (r = d->requests; r; r = next) {
		next = r->next;
		own_request_dispatch(r);
	}
	return 0;
}

int own_profiles_open(struct profild *d)
{
	return sd_event_add_defer(d->event, &d->on_dirty, dirty_dispatch, d);
}

void own_profiles_close(struct profild *d)
{
	while (d->dirty) {
		struct own_profile *own = d->dirty;

		d->dirty = own->next_dirty;
		own->dirty = false;
		own_profile_unref(own);
	}
	d->on_dirty = sd_event_source_disable_unref(d->on_dirty);
}

/* --- after a restart -------------------------------------------------------------------------- */

int own_profile_recover(struct profild *d, struct target *t, const struct profil_owner *owner)
{
	struct own_profile_params p = { .tgid = (pid_t)owner->tgid,
					.cookie = owner->cookie,
					.cookie_addr = owner->cookie_addr,
					.flags = owner->flags,
					.width = owner->width,
					.cap = owner->cap,
					.nregions = t->nregions };
	struct user *user = NULL;
	struct own_profile *own = NULL;
	int err = start_check(&p);

	if (err)
		return err;
	if (p.flags & PROFIL_START_PCS && t->ncounters)
		return -EINVAL;
	err = user_get(&user, d->quota, owner->uid, owner->root);
	if (err)
		return err;
	err = own_profile_new(&own, d, p.tgid, user, true);
	user_unref(user);
	if (err)
		return err;
	own_profile_set(own, &p);
	own->period_ns = t->period_ns;
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
