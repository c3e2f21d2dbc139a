/* chunks.h - the counters: BPF arrays, made when they are needed, handed out in groups */
#ifndef PROFIL_CHUNKS_H
#define PROFIL_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/layout.h"

struct chunks;
struct store;

/*
 * The kernel looks for the first chunk in the map @first, for the others in the array of maps
 * @outer; @store keeps these.
 */
int chunks_open(struct chunks **out, int outer, int first, struct store *store);
struct chunks *chunks_close(struct chunks *c);

/*
 * Takes @n counters in a row, all 0. For a reader they are whole chunks of their own, frozen: the
 * kernel counts on, nobody else can write. Returns the first, or -ENOSPC or another error.
 */
int chunks_take(struct chunks *c, uint64_t n, bool reader, uint32_t *first);

/* Takes the @n counters from @first on as an earlier daemon had them, with what they hold. */
int chunks_take_at(struct chunks *c, uint32_t first, uint64_t n);

/*
 * When all are taken that an earlier daemon had: what that has left in counters which are nobody's
 * now is not for who takes them next.
 */
void chunks_sweep(struct chunks *c);

/* Gives them back, when no program can be counting in them any more. */
void chunks_give(struct chunks *c, uint32_t first, uint64_t n, bool reader);

/*
 * Chunks that are nobody's any more, @max at most: whoever asks takes them from the array of maps,
 * each of which takes a grace period, and says when they have left it. Returns how many.
 */
uint32_t chunks_leaving(struct chunks *c, __u32 *key, uint32_t max);
void chunks_left(struct chunks *c, const __u32 *key, uint32_t n);

/* The chunk's descriptor. */
int chunks_fd(const struct chunks *c, uint32_t chunk);
unsigned int chunks_count(const struct chunks *c);

/*
 * Finds the next marked counters of [*@counter, @end): whole groups, from a marked one to a marked
 * one, with none but near ones between, @max at most. Returns how many and the first in *@counter;
 * 0 where none is left. Everything is a multiple of a group.
 */
uint32_t chunks_next(const struct chunks *c, uint64_t *counter, uint64_t end, uint32_t max);

/* Moves what @n counters from @counter on hold to @count, which is all 0. Returns the sum. */
uint64_t chunks_drain(struct chunks *c, uint64_t counter, uint32_t n, uint32_t *count);

#endif
