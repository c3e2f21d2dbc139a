/* counter_drain.c - takes counts from the counters, and puts them back
 *
 * A sample sets the block's dirty flag, adds to the counter, and sets the flag again if it has been
 * cleared. The daemon exchanges the flag with 0, a full barrier, then exchanges the counters: it
 * takes the count now, or finds the flag set in the next pass.
 */
#include <string.h>

#include "base/sparse.h"
#include "counter_pool.h"

static uint8_t *dirty_of(const struct counter_pool *c, uint32_t b)
{
	return &counter_pool_memory(c, b / PROFIL_CHUNK_BLOCKS)->dirty[b % PROFIL_CHUNK_BLOCKS];
}

static uint32_t *block_of(const struct counter_pool *c, uint32_t b)
{
	struct profil_chunk *at = counter_pool_memory(c, b / PROFIL_CHUNK_BLOCKS);

	return &at->count[(size_t)(b % PROFIL_CHUNK_BLOCKS) * PROFIL_BLOCK_COUNTERS];
}

/* The first dirty block of [@b, @end), or @end. Skips eight clean ones at a time. */
static uint32_t next_dirty(const struct counter_pool *c, uint32_t b, uint32_t end)
{
	while (b < end) {
		uint64_t eight;

		if (b % 8 == 0 && end - b >= 8) {
			memcpy(&eight, dirty_of(c, b), sizeof(eight));
			if (!eight) {
				b += 8;
				continue;
			}
		}
		if (*dirty_of(c, b))
			return b;
		b++;
	}
	return end;
}

/* Takes the counts of block @b; returns their sum. The flag is cleared first: see above. */
static uint64_t take_block(const struct counter_pool *c, uint32_t b, uint32_t *count)
{
	uint32_t *counter = block_of(c, b);
	uint64_t sum = 0;

	__atomic_exchange_n(dirty_of(c, b), 0, __ATOMIC_SEQ_CST);
	for (int first = 0; first < PROFIL_BLOCK_COUNTERS; first += 8) {
		if (!any_of_eight(counter + first))
			continue;
		for (int i = first; i < first + 8; i++) {
			if (__atomic_load_n(&counter[i], __ATOMIC_RELAXED))
				count[i] = __atomic_exchange_n(&counter[i], 0, __ATOMIC_RELAXED);
			sum += count[i];
		}
	}
	return sum;
}

/* Up to this distance two dirty blocks go into one span: cheaper than a span for each. */
#define BRIDGED 16

uint32_t counter_pool_next(const struct counter_pool *c, uint64_t *counter, uint64_t end,
			   uint32_t max)
{
	uint32_t last = (uint32_t)(end / PROFIL_BLOCK_COUNTERS), most = max / PROFIL_BLOCK_COUNTERS;
	uint32_t b = next_dirty(c, (uint32_t)(*counter / PROFIL_BLOCK_COUNTERS), last), n = 0;

	*counter = (uint64_t)b * PROFIL_BLOCK_COUNTERS;
	if (last - b > most)
		last = b + most;
	for (uint32_t at = b, reach = last; at < reach; at = next_dirty(c, at + 1, reach)) {
		n = at + 1 - b;
		reach = last - at > BRIDGED ? at + BRIDGED : last;
	}
	return n * PROFIL_BLOCK_COUNTERS;
}

uint64_t counter_pool_drain(struct counter_pool *c, uint64_t counter, uint32_t n, uint32_t *count)
{
	uint32_t b = (uint32_t)(counter / PROFIL_BLOCK_COUNTERS);
	uint32_t end = b + n / PROFIL_BLOCK_COUNTERS;
	uint64_t sum = 0;

	for (uint32_t at = next_dirty(c, b, end); at < end; at = next_dirty(c, at + 1, end))
		sum += take_block(c, at, count + (size_t)(at - b) * PROFIL_BLOCK_COUNTERS);
	return sum;
}

/* Saturates at 2^32 - 1. Sets the flag last, like a sample: see above. */
void counter_pool_add(struct counter_pool *c, uint64_t counter, uint32_t n)
{
	uint32_t b = (uint32_t)(counter / PROFIL_BLOCK_COUNTERS);
	uint32_t *at = &block_of(c, b)[counter % PROFIL_BLOCK_COUNTERS];
	uint32_t old = __atomic_load_n(at, __ATOMIC_RELAXED), sum;

	do
		sum = profil_add(old, n, UINT32_MAX);
	while (!__atomic_compare_exchange_n(at, &old, sum, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED));
	__atomic_store_n(dirty_of(c, b), 1, __ATOMIC_SEQ_CST);
}
