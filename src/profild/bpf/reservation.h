/* reservation.h - what targets use of the maps: an index, regions, counters */
#ifndef PROFIL_PROFILD_BPF_RESERVATION_H
#define PROFIL_PROFILD_BPF_RESERVATION_H

#include <systemd/sd-event.h>

#include "profild/bpf/counters/counter_pool.h"
#include "profild/profile/target.h"

struct reservations;
struct maps;
struct store;

/*
 * What a target gives back is freed after an RCU grace period, because samples in flight may still
 * use it. @settled is called after the grace period, before anything is freed.
 */
int reservations_open(struct reservations **out, struct maps *maps, struct store *store,
		      const struct quota_config *quota, sd_event *event, void (*settled)(void *arg),
		      void *arg);
struct reservations *reservations_close(struct reservations *all);

/*
 * Reserves an index, regions and counters for @t, which has been charged for them, and sets their
 * numbers in @t. Returns 0, an error (-EAGAIN, -ENOMEM), or -EINPROGRESS if chunks have to be
 * created first, which waits for an RCU grace period: then @done is called from the event loop. The
 * reservation ends with reservation_take() or reservation_cancel(); after the latter @done is not
 * called.
 */
int reservation_begin(struct reservations *all, struct target *t, void (*done)(void *arg, int err),
		      void *arg);
void reservation_cancel(struct reservations *all, struct target *t);

/* Takes what is reserved for @t. A target without counters needs no reservation. */
int reservation_take(struct reservations *all, struct target *t);

/* Takes exactly what @t, a target of @uid, had with an earlier daemon. */
int reservation_take_at(struct reservations *all, struct target *t, uid_t uid, bool root);

/*
 * Gives back what @t has taken. @drained: it is closed and no sample is in flight, so its counters
 * are free at once, without a grace period.
 */
void reservation_give(struct reservations *all, struct target *t, bool drained);

/* The pool of counters. */
struct counter_pool *reservations_chunks(const struct reservations *all);

#endif
