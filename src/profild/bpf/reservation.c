/* reservation.c - what targets use of the maps: an index, regions, counters
 *
 * A target that ends gives back its index, regions and counters, but samples in flight may still
 * use them. They move to a struct returned, which waits on @leaving until the next RCU grace period
 * begins, and on @waiting until it is over; then they are freed and their charges given back. One
 * grace period is under way at a time. Chunks that leave the array of maps go with it, at the
 * earliest a second after their last use.
 */
#include <assert.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "rcu_barrier.h"
#include "reservation.h"
#include "maps.h"
#include "profild/bpf/counters/range_alloc.h"
#include "profild/clock/linger.h"
#include "user_slots.h"
#include "profild/profile/own_profile.h"
#include "profild/skeleton.h"

struct returned {
	struct returned *next;
	uint32_t index;
	uint32_t user; /* slot */
	uint32_t region_first;
	uint32_t nregions;
	uint32_t counter_first;
	uint64_t ncounters;
	struct target_charges charges;
};

struct reservations {
	struct maps *maps;
	const struct quota_config *quota;
	struct range *indices;
	struct range *regions;
	struct counter_pool *chunks;
	struct rcu_barrier *barrier;
	struct linger *linger; /* calls counter_pool_age() */
	void (*settled)(void *arg);
	void *arg;
	struct returned *leaving;	/* for the next grace period */
	struct returned *waiting;	/* for the grace period that is under way */
	struct rcu_barrier_drops drops; /* chunks that it removes */
};

static void free_again(struct reservations *all, const struct returned *was)
{
	struct process_table *p = &all->maps->processes;

	/* A fork that was in flight when the target stopped may have inserted a child since. */
	process_table_clear(p, 0, was->index);
	memset(&p->target[was->index], 0, sizeof(struct profil_target));
	user_slot_unuse(p->tables, was->user);
	if (was->ncounters)
		counter_pool_give(all->chunks, was->counter_first, was->ncounters);
	range_give(all->regions, was->region_first, was->nregions);
	range_give(all->indices, was->index, 1);
}

static void free_all(struct reservations *all, struct returned **list)
{
	while (*list) {
		struct returned *was = *list;

		*list = was->next;
		free_again(all, was);
		target_charges_give(&was->charges);
		free(was);
	}
}

static void begin_grace_period(struct reservations *all)
{
	struct rcu_barrier_drops *drops = &all->drops;

	if (counter_pool_emptied(all->chunks))
		linger_begin(all->linger);
	if (all->waiting || drops->n)
		return;
	drops->n = counter_pool_leaving(all->chunks, drops->key, RCU_BARRIER_DROPS);
	if (!all->leaving && !drops->n)
		return;
	for (uint32_t i = 0; i < drops->n; i++)
		drops->map[i] = bpf_map__fd(all->maps->skel->maps.chunks);
	all->waiting = steal(all->leaving);
	rcu_barrier_ask(all->barrier, drops);
}

static void on_linger(void *arg)
{
	struct reservations *all = arg;

	counter_pool_age(all->chunks);
	begin_grace_period(all);
}

static void on_grace_period(void *arg)
{
	struct reservations *all = arg;

	all->settled(all->arg);
	counter_pool_left(all->chunks, all->drops.key, all->drops.n);
	all->drops.n = 0;
	free_all(all, &all->waiting);
	begin_grace_period(all);
}

int reservations_open(struct reservations **out, struct maps *maps, struct store *store,
		      const struct quota_config *quota, sd_event *event, void (*settled)(void *arg),
		      void *arg)
{
	struct reservations *all = calloc(1, sizeof(*all));
	int err;

	if (!all)
		return -ENOMEM;
	all->maps = maps;
	all->quota = quota;
	user_slots_reset(maps->processes.tables, quota->machine.of[RES_CHILDREN]);
	all->settled = settled;
	all->arg = arg;
	err = range_new(&all->indices, PROFIL_MAX_TARGETS)
		      ?: range_new(&all->regions, PROFIL_MAX_REGIONS)
		      ?: counter_pool_open(&all->chunks, bpf_map__fd(maps->skel->maps.chunks),
					   store, event)
		      ?: rcu_barrier_open(&all->barrier, event, on_grace_period, all)
		      ?: linger_open(&all->linger, event, on_linger, all);
	if (err) {
		reservations_close(all);
		return err;
	}
	*out = all;
	return 0;
}

struct reservations *reservations_close(struct reservations *all)
{
	if (!all)
		return NULL;
	linger_close(all->linger);
	rcu_barrier_close(all->barrier);
	free_all(all, &all->waiting);
	free_all(all, &all->leaving);
	counter_pool_close(all->chunks);
	range_free(all->regions);
	range_free(all->indices);
	free(all);
	return NULL;
}

/* The user to which the kernel charges children. */
static struct user_slot slot_of(const struct reservations *all, uid_t uid, bool root)
{
	const struct quota_config *q = all->quota;

	return (struct user_slot){
		.uid = uid,
		.root = root,
		.children_max = root ? UINT64_MAX : q->user.of[RES_CHILDREN],
		.children_reserve = root ? 0 : q->reserve.of[RES_CHILDREN],
	};
}

/* From reservation_begin() until the target starts or gives it back. */
struct reservation {
	struct counter_pool_take take;
	struct reservations *reservations;
	struct target *target;
	bool complete;
	void (*done)(void *arg, int err);
	void *arg;
};

static void give_numbers(struct reservations *all, const struct target *t)
{
	range_give(all->regions, t->region_first, t->nregions);
	range_give(all->indices, t->index, 1);
}

static int take_numbers(struct reservations *all, struct target *t)
{
	int err = range_take(all->indices, 1, &t->index);

	if (err)
		return -EAGAIN;
	err = range_take(all->regions, t->nregions, &t->region_first);
	if (err)
		range_give(all->indices, t->index, 1);
	return err ? -EAGAIN : 0;
}

static int has_counters(struct reservation *r, int err)
{
	struct target *t = r->target;

	if (err) {
		give_numbers(r->reservations, t);
		t->reservation = NULL;
		free(r);
		return -ENOMEM;
	}
	t->counter_first = r->take.first;
	r->complete = true;
	return 0;
}

static void on_counters(struct counter_pool_take *take, int err)
{
	struct reservation *r = (struct reservation *)take;
	void (*done)(void *arg, int err) = r->done;
	void *arg = r->arg;

	done(arg, has_counters(r, err));
}

int reservation_begin(struct reservations *all, struct target *t, void (*done)(void *arg, int err),
		      void *arg)
{
	struct reservation *r = calloc(1, sizeof(*r));
	int err = r ? take_numbers(all, t) : -ENOMEM;

	if (err) {
		free(r);
		return err;
	}
	*r = (struct reservation){ .reservations = all, .target = t, .done = done, .arg = arg };
	r->take.n = t->ncounters;
	r->take.done = on_counters;
	t->reservation = r;
	err = counter_pool_begin(all->chunks, &r->take);
	return err == -EINPROGRESS ? err : has_counters(r, err);
}

void reservation_cancel(struct reservations *all, struct target *t)
{
	struct reservation *r = t->reservation;

	if (!r)
		return;
	if (r->complete)
		counter_pool_give(all->chunks, t->counter_first, t->ncounters);
	else
		counter_pool_cancel(all->chunks, &r->take);
	give_numbers(all, t);
	t->reservation = NULL;
	free(r);
}

int reservation_take(struct reservations *all, struct target *t)
{
	struct reservation *r = t->reservation;
	struct user_slot slot;
	int err;

	if (r && !r->complete)
		return -EBUSY;
	if (!r) {
		assert(!t->ncounters); /* they may have to wait: reservation_begin() */
		err = take_numbers(all, t);
		if (err)
			return err;
	}
	free(r);
	t->reservation = NULL;
	slot = slot_of(all, user_account_uid(t->charges.slot.user),
		       user_is_root(t->charges.slot.user));
	t->user = user_slot_use(all->maps->processes.tables, &slot);
	return 0;
}

int reservation_take_at(struct reservations *all, struct target *t, uid_t uid, bool root)
{
	const struct user_slot slot = slot_of(all, uid, root);
	int err = range_take_at(all->indices, t->index, 1);

	if (err)
		return err;
	err = range_take_at(all->regions, t->region_first, t->nregions);
	if (err) {
		range_give(all->indices, t->index, 1);
		return err;
	}
	err = counter_pool_take_at(all->chunks, t->counter_first, t->ncounters);
	if (err)
		give_numbers(all, t);
	if (!err)
		t->user = user_slot_adopt(all->maps->processes.tables,
					  all->maps->processes.target[t->index].user, &slot);
	return err;
}

void reservation_give(struct reservations *all, struct target *t, bool drained)
{
	struct returned *was = calloc(1, sizeof(*was));

	if (drained)
		counter_pool_give(all->chunks, t->counter_first, t->ncounters);
	if (drained)
		charge_give(&t->charges.counters);
	if (!was)
		return; /* without memory the target's index and regions stay taken */
	was->index = t->index;
	was->user = t->user;
	was->region_first = t->region_first;
	was->nregions = t->nregions;
	was->counter_first = t->counter_first;
	was->ncounters = drained ? 0 : t->ncounters;
	target_charges_move(&was->charges, &t->charges);
	was->next = all->leaving;
	all->leaving = was;
	begin_grace_period(all);
}

struct counter_pool *reservations_chunks(const struct reservations *all)
{
	return all->chunks;
}
