/* counter_drain.c - takes counts from the counters, and puts them back
 *
 * A sample sets the block's dirty flag, adds to the counter, and sets the flag again if it has been
 * cleared. The daemon exchanges the flag with 0, a full barrier, then exchanges the counters: it
 * takes the count now, or finds the flag set in the next pass.
 */
#include <string.h>

#include "core/sparse.h"
#include "counter_pool.h"

static uint8_t *dirty_of(const struct counter_pool *c, uint32_t g)
{
	return &counter_pool_memory(c, g / PROFIL_CHUNK_GROUPS)->dirty[g % PROFIL_CHUNK_GROUPS];
}

static uint32_t *group_of(const struct counter_pool *c, uint32_t g)
{
	struct profil_chunk *at = counter_pool_memory(c, g / PROFIL_CHUNK_GROUPS);

	return &at->count[(size_t)(g % PROFIL_CHUNK_GROUPS) * PROFIL_GROUP_COUNTERS];
}

/* The first dirty block of [@g, @end), or @end. Skips eight clean ones at a time. */
static uint32_t next_dirty(const struct counter_pool *c, uint32_t g, uint32_t end)
{
	while (g < end) {
		uint64_t eight;

		if (g % 8 == 0 && end - g >= 8) {
			memcpy(&eight, dirty_of(c, g), sizeof(eight));
			if (!eight) {
				g += 8;
				continue;
			}
		}
		if (*dirty_of(c, g))
			return g;
		g++;
	}
	return end;
}

/* Takes the counts of block @g; returns their sum. The flag is cleared first: see above. */
static uint64_t take_group(const struct counter_pool *c, uint32_t g, uint32_t *count)
{
	uint32_t *counter = group_of(c, g);
	uint64_t sum = 0;

	__atomic_exchange_n(dirty_of(c, g), 0, __ATOMIC_SEQ_CST);
	for (int first = 0; first < PROFIL_GROUP_COUNTERS; first += 8) {
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
	uint32_t last = (uint32_t)(end / PROFIL_GROUP_COUNTERS), most = max / PROFIL_GROUP_COUNTERS;
	uint32_t g = next_dirty(c, (uint32_t)(*counter / PROFIL_GROUP_COUNTERS), last), n = 0;

	*counter = (uint64_t)g * PROFIL_GROUP_COUNTERS;
	if (last - g > most)
		last = g + most;
	for (uint32_t at = g, reach = last; at < reach; at = next_dirty(c, at + 1, reach)) {
		n = at + 1 - g;
		reach = last - at > BRIDGED ? at + BRIDGED : last;
	}
	return n * PROFIL_GROUP_COUNTERS;
}

uint64_t counter_pool_drain(struct counter_pool *c, uint64_t counter, uint32_t n, uint32_t *count)
{
	uint32_t g = (uint32_t)(counter / PROFIL_GROUP_COUNTERS);
	uint32_t end = g + n / PROFIL_GROUP_COUNTERS;
	uint64_t sum = 0;

	for (uint32_t at = next_dirty(c, g, end); at < end; at = next_dirty(c, at + 1, end))
		sum += take_group(c, at, count + (size_t)(at - g) * PROFIL_GROUP_COUNTERS);
	return sum;
}

/* Saturates at 2^32 - 1. Sets the flag last, like a sample: see above. */
void counter_pool_add(struct counter_pool *c, uint64_t counter, uint32_t n)
{
	uint32_t g = (uint32_t)(counter / PROFIL_GROUP_COUNTERS);
	uint32_t *at = &group_of(c, g)[counter % PROFIL_GROUP_COUNTERS];
	uint32_t old = __atomic_load_n(at, __ATOMIC_RELAXED), sum;

	do
		sum = profil_add(old, n, UINT32_MAX);
	while (!__atomic_compare_exchange_n(at, &old, sum, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED));
	__atomic_store_n(dirty_of(c, g), 1, __ATOMIC_SEQ_CST);
}
