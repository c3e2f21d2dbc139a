/* own_memory.c - opens the memory of a profile again: after a fork, a lost worker, a restart */
#include <errno.h>

#include "buffer_writer.h"
#include "own_profile.h"

static void own_profile_reopened(void *arg, const struct work_answer *a, union work_area *area)
{
	struct own_profile *own = arg;

	if (own->state == OWN_PROFILE_OPENING && !a->err) {
		own->state = OWN_PROFILE_ON;
		writer_queue(own);
		writer_kick(own);
	} else if (own->state == OWN_PROFILE_OPENING) {
		if (a->err == -ETIMEDOUT || a->err == -EAGAIN)
			own_profile_give_up(own);
		else
			own_profile_over(own);
	}
	own_profile_unref(own);
}

/* Gives @own, whose memory is lost, a slot of the lane's present worker. */
static int own_profile_renew_memory(struct own_profile *own)
{
	struct lane *lane = lane_ref(own->memory.lane);
	int err;

	remote_fini(&own->memory);
	err = remote_init(&own->memory, lane);
	lane_unref(lane);
	return err;
}

void own_profile_reopen(struct own_profile *own, pid_t tgid)
{
	own->tgid = tgid;
	own->state = OWN_PROFILE_OPENING;
	own_profile_renew_id(own);
	if (remote_lost(&own->memory) && own_profile_renew_memory(own)) {
		own_profile_give_up(own);
		return;
	}
	own_profile_task(own, WORK_ADOPT, own_profile_reopened, own_profile_ref(own));
	lane_submit(own->memory.lane, &own->task);
}

void own_profiles_lost(struct profild *d, const struct user *u, bool late)
{
	struct own_profile *own, *next;

	for (own = d->profiles; own; own = next) {
		next = own->next;
		if (own->user != u || own->state == OWN_PROFILE_STARTING)
			continue;
		if (own->state == OWN_PROFILE_ON && !late)
			own_profile_reopen(own, own->tgid);
		else if (own->state == OWN_PROFILE_ON || own->state == OWN_PROFILE_OPENING)
			own_profile_give_up(own);
	}
}

int own_profile_give_memory(struct own_profile *own)
{
	struct lane *lane = NULL;
	int err = lane_get(&lane, own->daemon->lanes, own->user)
		      ?: remote_init(&own->memory, lane)
		      ?: writer_join(own, lane, own_profile_outcome);

	lane_unref(lane);
	return err;
}
