/* counters.c - takes counts from chunks of counters, and puts them back
 *
 * A sample sets the block's dirty flag, adds to the counter, and sets the flag again if it has been
 * cleared. The daemon exchanges the flag with 0, a full barrier, then exchanges the counters: it
 * takes the count now, or finds the flag set in the next pass.
 */
#include <string.h>

#include "base/sparse.h"
#include "counters.h"

/* The first dirty block of [@b, @end), or @end. Skips eight clean ones at a time. */
static uint32_t next_dirty(struct profil_chunk *const *chunk, uint32_t b, uint32_t end)
{
	while (b < end) {
		uint64_t eight;

		if (b % 8 == 0 && end - b >= 8) {
			memcpy(&eight, counters_dirty(chunk, b), sizeof(eight));
			if (!eight) {
				b += 8;
				continue;
			}
		}
		if (*counters_dirty(chunk, b))
			return b;
		b++;
	}
	return end;
}

/* Takes the counts of block @b; returns their sum. The flag is cleared first: see above. */
static uint64_t take_block(struct profil_chunk *const *chunk, uint32_t b, uint32_t *count)
{
	uint32_t *counter = counters_block(chunk, b);
	uint64_t sum = 0;

	__atomic_exchange_n(counters_dirty(chunk, b), 0, __ATOMIC_SEQ_CST);
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

/*
 * The next run of blocks in [*@counter, @end): sets *@counter to its first counter and returns how
 * many, at most @max; 0: none is left. All are multiples of a block.
 */
static uint32_t next_run(struct profil_chunk *const *chunk, uint64_t *counter, uint64_t end,
			 uint32_t max)
{
	uint32_t last = (uint32_t)(end / PROFIL_BLOCK_COUNTERS), most = max / PROFIL_BLOCK_COUNTERS;
	uint32_t b = next_dirty(chunk, (uint32_t)(*counter / PROFIL_BLOCK_COUNTERS), last), n = 0;

	*counter = (uint64_t)b * PROFIL_BLOCK_COUNTERS;
	if (last - b > most)
		last = b + most;
	for (uint32_t at = b, reach = last; at < reach; at = next_dirty(chunk, at + 1, reach)) {
		n = at + 1 - b;
		reach = last - at > BRIDGED ? at + BRIDGED : last;
	}
	return n * PROFIL_BLOCK_COUNTERS;
}

/* Moves the counts of @n counters from @counter on to @count, which is all 0. Returns the sum. */
static uint64_t drain_run(struct profil_chunk *const *chunk, uint64_t counter, uint32_t n,
			  uint32_t *count)
{
	uint32_t b = (uint32_t)(counter / PROFIL_BLOCK_COUNTERS);
	uint32_t end = b + n / PROFIL_BLOCK_COUNTERS;
	uint64_t sum = 0;

	for (uint32_t at = next_dirty(chunk, b, end); at < end; at = next_dirty(chunk, at + 1, end))
		sum += take_block(chunk, at, count + (size_t)(at - b) * PROFIL_BLOCK_COUNTERS);
	return sum;
}

bool counters_take(struct profil_chunk *const *chunk, struct target *t, struct counts *out)
{
	if (!t->ncounters) /* PROFIL_START_PCS */
		return false;
	for (; t->cursor.region < t->nregions; t->cursor.region++, t->cursor.at = 0) {
		const struct profil_region *r = &t->region[t->cursor.region];
		uint64_t end = r->first + profil_counters_for(r->x.nbins);
		uint64_t at = r->first + t->cursor.at;
		uint32_t n;

		if (r->owner != t->cursor.region || !r->x.nbins)
			continue;
		n = next_run(chunk, &at, end, out->room);
		if (!n)
			continue;
		memset(out->count, 0, n * sizeof(out->count[0]));
		out->owner = t->cursor.region;
		out->bin = (uint32_t)(at - r->first);
		out->n = n < r->x.nbins - out->bin ? n : r->x.nbins - out->bin;
		out->sum = drain_run(chunk, at, n, out->count);
		t->cursor.at = at + n - r->first;
		return true;
	}
	return false;
}

/* Saturates at 2^32 - 1. Sets the flag last, like a sample: see above. */
void counters_add(struct profil_chunk *const *chunk, uint64_t counter, uint32_t n)
{
	uint32_t b = (uint32_t)(counter / PROFIL_BLOCK_COUNTERS);
	uint32_t *at = &counters_block(chunk, b)[counter % PROFIL_BLOCK_COUNTERS];
	uint32_t old = __atomic_load_n(at, __ATOMIC_RELAXED), sum;

	do
		sum = profil_add(old, n, UINT32_MAX);
	while (!__atomic_compare_exchange_n(at, &old, sum, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_RELAXED));
	__atomic_store_n(counters_dirty(chunk, b), 1, __ATOMIC_SEQ_CST);
}
