/* counter_pool.h - the counters: BPF arrays, created on demand, handed out in blocks */
#ifndef PROFIL_PROFILD_BPF_COUNTERS_COUNTER_POOL_H
#define PROFIL_PROFILD_BPF_COUNTERS_COUNTER_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "core/shared_maps.h"

struct chunks;
struct store;

/* @outer: the array of maps in which the kernel finds the chunks. @store keeps them. */
int chunks_open(struct chunks **out, int outer, struct store *store, sd_event *event);
struct chunks *chunks_close(struct chunks *c);

/* A request for counters, all of which are 0 when it is complete. */
struct chunks_take {
	struct chunks_take *next;
	uint64_t n;
	void (*done)(struct chunks_take *take, int err);
	uint32_t first;	 /* the first counter, once complete */
	uint32_t group;	 /* private */
	uint32_t groups; /* likewise */
};

/*
 * Takes @take->n consecutive counters. Returns 0 if their chunks are present, an error (-ENOSPC),
 * or -EINPROGRESS: the chunks are created in the background, and done() is called from the event
 * loop unless chunks_cancel() comes first.
 */
int chunks_begin(struct chunks *c, struct chunks_take *take);
void chunks_cancel(struct chunks *c, struct chunks_take *take);

/* Takes the @n counters from @first on, which a target of an earlier daemon has, with their counts.
 */
int chunks_take_at(struct chunks *c, uint32_t first, uint64_t n);

/* Zeroes all counters that are free. Called when the targets of an earlier daemon have theirs. */
void chunks_sweep(struct chunks *c);

/* Zeroes and frees counters in which no BPF program can count any more. */
void chunks_give(struct chunks *c, uint32_t first, uint64_t n);

/*
 * chunks_emptied() is true if chunks have become idle; then chunks_age() is to be called once a
 * second until it is false again. Chunks leave a second or two after their last use.
 */
bool chunks_emptied(const struct chunks *c);
void chunks_age(struct chunks *c);

/*
 * Stores the numbers of at most @max chunks that are to leave, and returns how many. The caller
 * deletes them from the array of maps, which waits for an RCU grace period each, then calls
 * chunks_left().
 */
uint32_t chunks_leaving(struct chunks *c, __u32 *key, uint32_t max);
void chunks_left(struct chunks *c, const __u32 *key, uint32_t n);

/* The mapped chunk; NULL if nothing has been taken from it yet. */
struct profil_chunk *chunks_memory(const struct chunks *c, uint32_t chunk);

unsigned int chunks_count(const struct chunks *c);

/* --- counter_drain.c: */

/*
 * Finds the next dirty blocks of [*@counter, @end): a run of blocks that begins and ends with a
 * dirty one and has no long clean stretch in between. Sets *@counter to the first counter and
 * returns how many, at most @max; 0: none is left. All are multiples of a block.
 */
uint32_t chunks_next(const struct chunks *c, uint64_t *counter, uint64_t end, uint32_t max);

/* Moves the counts of @n counters from @counter on to @count, which is all 0. Returns the sum. */
uint64_t chunks_drain(struct chunks *c, uint64_t counter, uint32_t n, uint32_t *count);

/* Adds @n to @counter and sets its block's dirty flag, as a sample does. */
void chunks_add(struct chunks *c, uint64_t counter, uint32_t n);

#endif
