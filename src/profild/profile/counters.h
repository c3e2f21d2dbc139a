/* counters.h - takes counts from chunks of counters, and puts them back */
#ifndef PROFIL_PROFILD_PROFILE_COUNTERS_H
#define PROFIL_PROFILD_PROFILE_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/shared_maps.h"
#include "sampler.h"

/*
 * A @chunk[] has the chunks by their number; only those of the counters that are asked for need be
 * there. A block is numbered like a counter: its chunk * PROFIL_CHUNK_BLOCKS + its place in it.
 */
static inline uint8_t *counters_dirty(struct profil_chunk *const *chunk, uint32_t block)
{
	return &chunk[block / PROFIL_CHUNK_BLOCKS]->dirty[block % PROFIL_CHUNK_BLOCKS];
}

static inline uint32_t *counters_block(struct profil_chunk *const *chunk, uint32_t block)
{
	size_t first = (size_t)(block % PROFIL_CHUNK_BLOCKS) * PROFIL_BLOCK_COUNTERS;

	return &chunk[block / PROFIL_CHUNK_BLOCKS]->count[first];
}

/*
 * Takes the next counts of @t's regions, from its cursor on, in a run of blocks that begins and
 * ends with a dirty one and has no long clean stretch in between. Returns false if there are none.
 */
bool counters_take(struct profil_chunk *const *chunk, struct target *t, struct counts *out);

/* Adds @n to @counter and sets its block's dirty flag, as a sample does. */
void counters_add(struct profil_chunk *const *chunk, uint64_t counter, uint32_t n);

#endif
