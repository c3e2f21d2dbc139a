/* count.bpf.h - counts a sample in a target's counters, in BPF programs and in replay */
#ifndef PROFIL_BPF_COUNT_BPF_H
#define PROFIL_BPF_COUNT_BPF_H

#include <stdbool.h>

#include "core/bin.h"
#include "core/shared_maps.h"

/*
 *	sample --> total --> region --> bin --> counter, and its block's dirty flag
 *		     |	       |	  |	  `--> lost: what a saturated counter does not take
 *		     |	       `----------`--> unmatched, or an event with the pc; lost without room
 *		     `--> out of the total again, because the target is closed
 *
 * The including file defines these three: where the maps are, and where pcs are sent.
 */
static inline const struct profil_region *region_at(const struct profil_target *target,
						    __u32 index);
static inline struct profil_chunk *chunk_at(const struct profil_target *target, __u32 number);
/* Returns false if there is no room for the event. */
static inline bool post_raw(const struct profil_target *target, __u64 entry, __u64 pc);

#define PROFIL_INLINE static inline __attribute__((always_inline))

/* --- find the region -------------------------------------------------------------------------- */

/*
 * 1 if @lo <= @pc, else 0, for any two numbers: the borrow of @pc - @lo, computed without a branch.
 * The asm hides the sign, or clang branches on it.
 */
PROFIL_INLINE __u32 is_at_or_below(__u64 lo, __u64 pc)
{
	__u64 borrow = (~pc & lo) | (~(pc ^ lo) & (pc - lo));

	__asm__ volatile("" : "+r"(borrow));
	return 1 ^ (__u32)(borrow >> 63);
}

/*
 * The only region that may cover @pc: the last one that begins at or below it. The search has no
 * data-dependent branch. With one, the verifier follows every path: 270,000 instructions, a second
 * of each start.
 */
PROFIL_INLINE const struct profil_region *profil_region_of(const struct profil_target *target,
							   __u64 pc)
{
	__u32 low = target->region_first, n = target->nregions;

	if (n == 1) { /* as most targets have */
		const struct profil_region *only = region_at(target, low);

		return only && pc >= only->lo ? only : NULL;
	}
	for (int i = 0; i < PROFIL_REGION_STEPS && n; i++) {
		__u32 half = n / 2, after;
		const struct profil_region *region = region_at(target, low + half);

		if (!region)
			return NULL;
		after = is_at_or_below(region->lo, pc);
		low += after * (half + 1);
		n = half - after * (2 * half + 1 - n);
	}
	if (low == target->region_first)
		return NULL;
	return region_at(target, low - 1);
}

/* The counter of @pc, or PROFIL_NO_BIN. */
PROFIL_INLINE __u32 profil_counter_of(const struct profil_target *target, __u64 pc)
{
	const struct profil_region *region = profil_region_of(target, pc);
	__u32 bin = region ? profil_bin(&region->x, pc) : PROFIL_NO_BIN;

	return bin == PROFIL_NO_BIN ? PROFIL_NO_BIN : region->first + bin;
}

/* --- count ------------------------------------------------------------------------------------ */

/*
 * counter_add() saturates: it never passes 2^32 - 1, and returns how much it has added. Below
 * COUNTER_NEAR_TOP a plain atomic add is safe, because too few CPUs add at once to bridge the
 * distance. Above it, counter_add_near_top() uses compare-and-swap; a try fails only if another
 * CPU's succeeded.
 */
#define COUNTER_NEAR_TOP 0xff000000u
#define COUNTER_TRIES 16

PROFIL_INLINE __u32 counter_add_near_top(__u32 *counter, __u32 n)
{
	__u32 old = *(volatile __u32 *)counter;

	for (int i = 0; i < COUNTER_TRIES; i++) {
		__u32 new = profil_add(old, n, ~(__u32)0);
		__u32 seen = __sync_val_compare_and_swap(counter, old, new);

		if (seen == old)
			return new - old;
		old = seen;
	}
	return 0;
}

/* An atomic add whose result is used is a full barrier on every machine. */
PROFIL_INLINE void counter_add_ordered(__u32 *counter, __u32 n)
{
	__u32 before = __sync_fetch_and_add(counter, n);

	__asm__ volatile("" : : "r"(before));
}

PROFIL_INLINE void sum_add_ordered(__u64 *sum, __u64 n)
{
	__u64 before = __sync_fetch_and_add(sum, n);

	__asm__ volatile("" : : "r"(before));
}

PROFIL_INLINE __u32 counter_add(__u32 *counter, __u32 n)
{
	if (*(volatile __u32 *)counter >= COUNTER_NEAR_TOP)
		return counter_add_near_top(counter, n);
	counter_add_ordered(counter, n);
	return n;
}

/*
 * Adds @n to @counter, with its block's dirty flag set before and after. Returns how much it has
 * added. The flag is set before the add, which is a full barrier, so the target flag is tested only
 * when this flag is visible (profild/profile/sync_timer.c). If a pass has cleared it before the
 * add, it is set again.
 */
PROFIL_INLINE __u32 profil_count(const struct profil_target *target, __u32 counter, __u32 n)
{
	struct profil_chunk *chunk = chunk_at(target, counter / PROFIL_CHUNK_COUNTERS);
	__u32 place = counter % PROFIL_CHUNK_COUNTERS;
	volatile __u8 *dirty;

	if (!chunk)
		return 0;
	dirty = &chunk->dirty[place / PROFIL_BLOCK_COUNTERS];
	*dirty = 1;
	n = counter_add(&chunk->count[place], n);
	if (!*dirty) {
		*dirty = 1;
		counter_add_ordered(&chunk->count[place], 0);
	}
	return n;
}

/* --- one sample ------------------------------------------------------------------------------- */

/* Events for one sample, at most. If it stands for more samples, the rest is lost. */
#define RAW_AT_ONCE 32

/*
 * Counts @n samples without a counter: as events with the pc if the target is RAW or the process
 * unbound, else as unmatched.
 */
PROFIL_INLINE void profil_miss(struct profil_target *target, __u64 entry, __u64 pc, __u32 n)
{
	__u32 sent = 0;

	if (!(entry & PROFIL_ENTRY_UNBOUND) && !(target->flags & PROFIL_TARGET_RAW)) {
		__sync_fetch_and_add(&target->unmatched, n);
		return;
	}
	while (sent < RAW_AT_ONCE && sent < n && post_raw(target, entry, pc))
		sent++;
	__sync_fetch_and_add(&target->raw, sent);
	if (sent < n)
		__sync_fetch_and_add(&target->lost, n - sent);
}

enum profil_outcome {
	PROFIL_OUTCOME_CLOSED, /* the target has stopped */
	PROFIL_OUTCOME_COUNTED,
	PROFIL_OUTCOME_MISSED, /* they have no counter: profil_miss() is due */
};

/*
 * Counts @n samples of @entry's process at @pc. Adds to total, then tests CLOSED; pairs with
 * process_table_clear(), which sets CLOSED, then reads total (Dekker): either the daemon waits for
 * these samples, or they are taken back here.
 */
PROFIL_INLINE enum profil_outcome profil_hit(struct profil_target *target, __u64 entry, __u64 pc,
					     __u32 n)
{
	__u32 counter = PROFIL_NO_BIN, counted;

	sum_add_ordered(&target->total, n);
	if (*(const volatile __u16 *)&target->flags & PROFIL_TARGET_CLOSED) {
		sum_add_ordered(&target->total, -(__u64)n);
		return PROFIL_OUTCOME_CLOSED;
	}
	if (!(entry & PROFIL_ENTRY_UNBOUND))
		counter = profil_counter_of(target, pc);
	if (counter == PROFIL_NO_BIN)
		return PROFIL_OUTCOME_MISSED;
	counted = profil_count(target, counter, n);
	if (counted < n)
		__sync_fetch_and_add(&target->lost, n - counted);
	return PROFIL_OUTCOME_COUNTED;
}

#endif
