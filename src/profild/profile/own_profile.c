/* own_profile.c - a process's own profile, started by profil() and its relatives */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "own_profile.h"
#include "sampler.h"

void own_profile_renew_id(struct own_profile *own)
{
	static uint64_t last;

	own->id = ++last;
}

int own_profile_new(struct own_profile **out, struct profild *d, pid_t tgid, struct user *user,
		    bool adopt)
{
	struct own_profile *own = calloc(1, sizeof(*own));
	int err = 0;

	if (!own)
		return -ENOMEM;
	if (adopt)
		charge_adopt(&own->charge, user, RES_PROFILES, 1);
	else
		err = charge_take(&own->charge, user, RES_PROFILES, 1);
	if (err) {
		free(own);
		return err;
	}
	own_profile_renew_id(own);
	own->daemon = d;
	own->tgid = tgid;
	own->user = user_ref(user);
	own->refs = 1; /* the caller's, then the list's */
	*out = own;
	return 0;
}

void own_profile_link(struct own_profile *own)
{
	own->next = own->daemon->profiles;
	own->daemon->profiles = own;
}

static void own_profile_unlink(struct own_profile *own)
{
	struct own_profile **place = &own->daemon->profiles;

	while (*place && *place != own)
		place = &(*place)->next;
	if (*place)
		*place = own->next;
}

void own_profile_samples(const struct own_profile *own, struct samples *out)
{
	struct sampler *sampler = own->daemon->sampler;
	const struct profil_ledger *l;

	memset(out, 0, sizeof(*out));
	if (!own->target)
		return;
	l = own->target->ledger;
	sampler->ops->samples(sampler, own->target, out);
	out->total += l->events;
	out->binned = l->drained + l->events - l->unmatched - l->dropped;
	out->unmatched += l->unmatched;
	out->lost += l->dropped;
}

void own_profile_stop(struct own_profile *own)
{
	struct sampler *sampler = own->daemon->sampler;

	if (own->target)
		sampler->ops->stop(sampler, own->target);
}

/* Frees the target and what it uses of the kernel's tables. */
static void own_profile_drop_target(struct own_profile *own)
{
	struct sampler *sampler = own->daemon->sampler;

	if (!own->target)
		return;
	own->target->ledger->dropped += own->npcs;
	sampler->ops->settled(sampler, own->target, true);
	sampler->ops->unreserve(sampler, own->target);
	sampler->ops->release(sampler, own->target);
	own->target = target_free(own->target);
}

struct own_profile *own_profile_ref(struct own_profile *own)
{
	own->refs++;
	return own;
}

void own_profile_unref(struct own_profile *own)
{
	if (--own->refs)
		return;
	assert(!own->queued && !own->writing);
	if (own->parent)
		own_profile_unborn_end(own);
	own_profile_drop_target(own);
	remote_fini(&own->memory);
	if (own->on_free)
		own->on_free(own);
	charge_give(&own->charge);
	user_unref(own->user);
	free(own->pcs);
	free(own);
}

void own_profile_mark(struct own_profile *own)
{
	struct profild *d = own->daemon;

	if (own->state == OWN_PROFILE_ENDING && !own->dirty) {
		own->dirty = true;
		own->next_dirty = d->dirty;
		d->dirty = own_profile_ref(own);
	}
	sd_event_source_set_enabled(d->on_dirty, SD_EVENT_ONESHOT);
}

/* A batch in flight still refers to the target, so the last reference frees it. */
void own_profile_end(struct own_profile *own)
{
	if (own->state == OWN_PROFILE_ENDED)
		return;
	own_profile_stop(own);
	own->state = OWN_PROFILE_ENDED;
	own_profile_unlink(own);
	if (own->asked > own->served)
		own_profile_mark(own);
	own_profile_unref(own);
}

void own_profile_forget(struct own_profile *own)
{
	struct sampler *sampler = own->daemon->sampler;

	if (own->state == OWN_PROFILE_ENDED)
		return;
	own->state = OWN_PROFILE_ENDED;
	own_profile_unlink(own);
	if (own->target)
		sampler->ops->unreserve(sampler, own->target);
	own->target = target_free(own->target);
	own_profile_unref(own);
}

void own_profile_task(struct own_profile *own, enum work_kind kind, task_done *done, void *arg)
{
	own->task = (struct task){ .work = { .kind = kind,
					     .slot = own->memory.slot,
					     .pid = own->tgid,
					     .image = own->image,
					     .cookie_addr = own->cookie_addr },
				   .done = done,
				   .arg = arg };
	memcpy(own->task.work.cookie, own->cookie, sizeof(own->cookie));
}

void own_profile_owner(const struct own_profile *own, struct profil_owner *out)
{
	*out = (struct profil_owner){
		.live = 1,
		.cookie_addr = own->cookie_addr,
		.tgid = (__u32)own->tgid,
		.uid = user_uid(own->user),
		.root = user_is_root(own->user),
		.flags = own->flags,
		.width = own->width,
		.cap = own->cap,
	};
	out->image = own->image;
	memcpy(out->cookie, own->cookie, sizeof(out->cookie));
}
