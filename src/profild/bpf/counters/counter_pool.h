/* counter_pool.h - the counters: BPF arrays, created on demand, handed out in blocks */
#ifndef PROFIL_PROFILD_BPF_COUNTERS_COUNTER_POOL_H
#define PROFIL_PROFILD_BPF_COUNTERS_COUNTER_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "core/shared_maps.h"

struct counter_pool;
struct store;

/* @outer: the array of maps in which the kernel finds the chunks. @store keeps them. */
int counter_pool_open(struct counter_pool **out, int outer, struct store *store, sd_event *event);
struct counter_pool *counter_pool_close(struct counter_pool *c);

/* A request for counters, all of which are 0 when it is complete. */
struct counter_pool_take {
	struct counter_pool_take *next;
	uint64_t n;
	void (*done)(struct counter_pool_take *take, int err);
	uint32_t first;	 /* the first counter, once complete */
	uint32_t block;	 /* private */
	uint32_t blocks; /* likewise */
};

/*
 * Takes @take->n consecutive counters. Returns 0 if their chunks are present, an error (-ENOSPC),
 * or -EINPROGRESS: the chunks are created in the background, and done() is called from the event
 * loop unless counter_pool_cancel() comes first.
 */
int counter_pool_begin(struct counter_pool *c, struct counter_pool_take *take);
void counter_pool_cancel(struct counter_pool *c, struct counter_pool_take *take);

/* Takes the @n counters from @first on, which a target of an earlier daemon has, with their counts.
 */
int counter_pool_take_at(struct counter_pool *c, uint32_t first, uint64_t n);

/* Zeroes all counters that are free. Called when the targets of an earlier daemon have theirs. */
void counter_pool_sweep(struct counter_pool *c);

/* Zeroes and frees counters in which no BPF program can count any more. */
void counter_pool_give(struct counter_pool *c, uint32_t first, uint64_t n);

/*
 * counter_pool_emptied() is true if chunks have become idle; then counter_pool_age() is to be
 * called once a second until it is false again. Chunks leave a second or two after their last use.
 */
bool counter_pool_emptied(const struct counter_pool *c);
void counter_pool_age(struct counter_pool *c);

/*
 * Stores the numbers of at most @max chunks that are to leave, and returns how many. The caller
 * deletes them from the array of maps, which waits for an RCU grace period each, then calls
 * counter_pool_left().
 */
uint32_t counter_pool_leaving(struct counter_pool *c, __u32 *key, uint32_t max);
void counter_pool_left(struct counter_pool *c, const __u32 *key, uint32_t n);

/* The chunks by number, mapped; NULL if nothing has been taken from one yet. */
struct profil_chunk *const *counter_pool_chunks(const struct counter_pool *c);

unsigned int counter_pool_count(const struct counter_pool *c);

#endif
