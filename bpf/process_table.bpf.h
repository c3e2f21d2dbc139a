/* process_table.bpf.h - the process table from the kernel's side, and the events for the daemon
 *
 * The process table says which processes are profiled, and by which target. It is a hash table of
 * 16384 buckets of one cache line, 8 entries each, keyed by tgid. A process in several targets has
 * several entries. An entry is one u64:
 *
 *	63..32 tgid | 31 LIVE | 30 UNBOUND | 28..16 generation | 15 FORKED | 14..12 exec_id
 *		| 11..0 target
 *
 * Each tgid has two buckets. An entry goes into the first one unless that is half full, then into
 * the emptier of the two. tables.displaced is the number of entries in second buckets; while it is
 * 0, which is nearly always, a search looks at the first bucket only. It is raised before such an
 * entry is inserted and lowered after it is removed.
 *
 * The kernel (fork, exec, exit) and the daemon (start, stop, bind) change entries concurrently and
 * without locks: every change replaces one entry by compare-and-swap. A failed swap means that the
 * other side was faster. One process is in one fork, exec or exit at a time, so the kernel's own
 * programs do not compete for an entry.
 *
 * Fork: the child of a process whose target is INHERIT gets an entry, FORKED, of a new generation.
 * A child that shares the parent's memory counts in the parent's target. A child with a copy of the
 * memory is UNBOUND: it has no counters, and its samples go to the daemon as pcs. The first of them
 * makes the daemon bind it: move the entry to a target of the child's own. FORKED entries are
 * charged to the user of the target (children, children_max), and one target may use half of its
 * user's limit. A child without room is counted in target->unfollowed. The side that removes or
 * binds the entry gives the charge back.
 *
 * Exec: an entry whose target is not FOLLOW is removed; one that stays gets the new exec_id, by
 * which a sample recognises an exec that the programs have missed (is_missed()).
 *
 * Members: target->members counts the entries that name a target. It is raised before an entry is
 * inserted and lowered after it is removed, so it reaches 0 only when no entry is left. The side
 * that lowers it to 0 sets target->ended, then the target's dirty flag.
 *
 * Stop: races with samples in flight. process_table_clear() sets CLOSED, then reads total; hit()
 * adds to total, then tests CLOSED. Both have a full barrier in between (Dekker), so one of the two
 * sees the other: the daemon waits for the sample, or the sample takes itself back.
 *
 * Dirty flags and wake-ups have their overview in src/profild/profile/sync_timer.c.
 */
#ifndef PROFIL_BPF_PROCESS_TABLE_BPF_H
#define PROFIL_BPF_PROCESS_TABLE_BPF_H

#include <stdbool.h>

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "core/shared_maps.h"
#include "kernel.bpf.h"
#include "maps.bpf.h"
#include "pid.bpf.h"
#include "table.bpf.h"

/* See profil_bucket_of(). */
const volatile __u32 bucket_seed;

static __always_inline struct profil_bucket *bucket_of(__u32 tgid, __u32 which)
{
	return PLACE(&tables.bucket[profil_bucket_of(tgid, bucket_seed, which)]);
}

/* How many of the two buckets of a process have to be searched. */
static __always_inline __u32 buckets(void)
{
	return *(const volatile __u32 *)&tables.displaced ? 2 : 1;
}

static __always_inline struct profil_target *target_of(__u64 entry)
{
	return PLACE(&tables.target[profil_entry_target(entry)]);
}

static __always_inline struct profil_user *user_of(const struct profil_target *target)
{
	return PLACE(&tables.user[target->user % PROFIL_MAX_TARGETS]);
}

/* Reads an entry exactly once, because it may change at any time. */
static __always_inline __u64 read_entry(const struct profil_bucket *bucket, __u32 i)
{
	return *(const volatile __u64 *)&bucket->entry[i];
}

/* True for a live entry of @tgid. One comparison: each sample of each process makes eight. */
static __always_inline bool entry_is(__u64 entry, __u32 tgid)
{
	return (entry ^ profil_entry(tgid, 0)) < PROFIL_ENTRY_LIVE;
}

/* True if the exec_id of @entry is that of @task. */
static __always_inline bool is_image(const struct task_struct *task, __u64 entry)
{
	return (entry & PROFIL_ENTRY_EXEC_IDS) == profil_entry_exec_id(task->self_exec_id);
}

/* --- events ----------------------------------------------------------------------------------- */

/* Returns false if the ring is full. */
static __always_inline bool post(__u32 kind, __u64 entry, __u64 pc)
{
	struct profil_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event)
		return false;
	event->pc = pc;
	event->tgid = profil_entry_tgid(entry);
	event->target = profil_entry_target(entry);
	event->kind = (__u16)kind;
	event->generation = (__u16)profil_entry_generation(entry);
	event->zero = 0;
	bpf_ringbuf_submit(event, 0);
	return true;
}

/* Posts a sample as a pc. Returns false if the user's share of the ring, or the ring, is full. */
static __always_inline bool post_raw(const struct profil_target *target, __u64 entry, __u64 pc)
{
	struct profil_user *user = user_of(target);
	__u32 taken = *(volatile __u32 *)&user->raw_taken;
	__s32 in_flight = (__s32)(__sync_fetch_and_add(&user->raw_sent, 1) - taken);

	if (in_flight < PROFIL_RAW_IN_FLIGHT && post(PROFIL_EVENT_RAW, entry, pc))
		return true;
	__sync_fetch_and_add(&user->raw_sent, -1);
	return false;
}

static __attribute__((noinline)) int set_first_dirty(__u64 entry)
{
	tables.dirty.target[profil_entry_target(entry)] = 1;
	if (__sync_lock_test_and_set(&tables.dirty.wakeup, 0))
		post(PROFIL_EVENT_DIRTY, entry, 0);
	return 0;
}

/* Sets the dirty flag of @entry's target. */
static __always_inline void set_dirty(__u64 entry)
{
	if (!*(volatile __u8 *)&tables.dirty.target[profil_entry_target(entry)])
		set_first_dirty(entry);
}

/* --- insert ----------------------------------------------------------------------------------- */

static __always_inline __u32 used(const struct profil_bucket *bucket)
{
	__u32 n = 0;

	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		__u64 sign = read_entry(bucket, i);

		sign |= -sign; /* no branches: the verifier would follow each of 2^8 paths */
		asm volatile("" : "+r"(sign));
		n += (__u32)(sign >> 63);
	}
	return n;
}

/* Puts @entry into a free place of bucket @which of its process. Global, as insert(). */
__attribute__((noinline)) int put(__u64 entry, __u32 which)
{
	struct profil_bucket *bucket = bucket_of(profil_entry_tgid(entry), which);

	for (int i = 0; i < PROFIL_BUCKET_CHILDREN; i++) {
		if (!read_entry(bucket, i) &&
		    !__sync_val_compare_and_swap(&bucket->entry[i], 0, entry))
			return true;
	}
	return false;
}

/* Global, so that the verifier checks it once, not at each call. */
__attribute__((noinline)) int insert(__u64 entry)
{
	__u32 tgid = profil_entry_tgid(entry), n = used(bucket_of(tgid, 0));

	if ((n < PROFIL_BUCKET_HALF || n <= used(bucket_of(tgid, 1))) && put(entry, 0))
		return true;
	__sync_fetch_and_add(&tables.displaced, 1);
	if (put(entry, 1))
		return true;
	__sync_fetch_and_add(&tables.displaced, -1);
	return put(entry, 0);
}

static __always_inline void discharge_child(const struct profil_target *target)
{
	__sync_fetch_and_add(&user_of(target)->children, -1);
	__sync_fetch_and_add(&tables.children, -1);
}

static __always_inline bool charge_child(const struct profil_target *target)
{
	struct profil_user *user = user_of(target);
	bool fits = target->members <= user->children_max / 2;

	fits &= __sync_fetch_and_add(&user->children, 1) < user->children_max;
	fits &= __sync_fetch_and_add(&tables.children, 1) <
		tables.children_max - user->children_reserve;
	if (!fits)
		discharge_child(target);
	return fits;
}

/*
 * Inserts the child @tgid into the target of its parent's @entry, with @bits set. Global, as
 * insert().
 */
__attribute__((noinline)) int inherit(__u64 entry, __u32 tgid, __u32 bits)
{
	struct profil_target *target = target_of(entry);
	__u32 inherited = PROFIL_ENTRY_TARGET | PROFIL_ENTRY_UNBOUND, generation;

	if (!(target->flags & PROFIL_TARGET_INHERIT))
		return 0;
	generation = __sync_fetch_and_add(&tables.generations, PROFIL_ENTRY_GENERATION) &
		     PROFIL_ENTRY_GENERATIONS;
	__sync_fetch_and_add(&target->members, 1);
	if (charge_child(target)) {
		if (insert(profil_entry(tgid, ((__u32)entry & inherited) | bits | generation)))
			return 0;
		discharge_child(target);
	}
	__sync_fetch_and_add(&target->members, -1);
	__sync_fetch_and_add(&target->unfollowed, 1);
	if (target->flags & PROFIL_TARGET_OBSERVE)
		table_lost_process(target->slot, false);
	return 0;
}

/* --- change and remove ------------------------------------------------------------------------ */

static __always_inline __u64 *place_of(__u64 entry, __u32 at)
{
	struct profil_bucket *bucket =
		bucket_of(profil_entry_tgid(entry), at / PROFIL_BUCKET_ENTRIES);

	return PLACE(&bucket->entry[at % PROFIL_BUCKET_ENTRIES]);
}

/* Removes @entry, which is at place @at of its two buckets. Global, as insert(). */
__attribute__((noinline)) int take_out(__u64 entry, __u32 at)
{
	struct profil_target *target = target_of(entry);

	if (__sync_val_compare_and_swap(place_of(entry, at), entry, 0) != entry)
		return 0;
	if (at >= PROFIL_BUCKET_ENTRIES)
		__sync_fetch_and_add(&tables.displaced, -1);
	if (entry & PROFIL_ENTRY_FORKED)
		discharge_child(target);
	if (__sync_fetch_and_add(&target->members, -1) == 1) {
		__sync_lock_test_and_set(&target->ended, 1); /* a full barrier before set_dirty() */
		set_dirty(entry);
	}
	return 0;
}

/*
 * Removes the exited process @tgid from all its targets except those with flag @but. Global, as
 * insert().
 */
__attribute__((noinline)) int take_out_all(__u32 tgid, __u32 but)
{
	__u32 end = buckets() * PROFIL_BUCKET_ENTRIES;

	for (__u32 at = 0; at < 2 * PROFIL_BUCKET_ENTRIES && at < end; at++) {
		__u64 entry = read_entry(bucket_of(tgid, at / PROFIL_BUCKET_ENTRIES),
					 at % PROFIL_BUCKET_ENTRIES);

		if (entry_is(entry, tgid) && !(target_of(entry)->flags & but))
			take_out(entry, at);
	}
	return 0;
}

/*
 * Updates or removes @entry, whose process has exec'd. @secret: the caller of execve() may not read
 * the new image. Global, as insert().
 */
__attribute__((noinline)) int exec_one(__u64 entry, __u32 at, __u32 exec_id, bool secret)
{
	const struct profil_target *target = target_of(entry);
	__u64 next = profil_entry_execd(entry, exec_id);

	if (!(target->flags & PROFIL_TARGET_FOLLOW) ||
	    (secret && (target->flags & PROFIL_TARGET_UNPRIVILEGED))) {
		if ((target->flags & PROFIL_TARGET_FOLLOW) &&
		    (target->flags & PROFIL_TARGET_OBSERVE))
			table_lost_process(target->slot, true);
		return take_out(entry, at);
	}
	__sync_val_compare_and_swap(place_of(entry, at), entry, next);
	return 0;
}

/* Updates or removes the entries of @tgid, which has exec'd. Global, as insert(). */
__attribute__((noinline)) int exec_of(__u32 tgid, __u32 exec_id, bool secret)
{
	__u32 end = buckets() * PROFIL_BUCKET_ENTRIES;

	for (__u32 at = 0; at < 2 * PROFIL_BUCKET_ENTRIES && at < end; at++) {
		__u64 entry = read_entry(bucket_of(tgid, at / PROFIL_BUCKET_ENTRIES),
					 at % PROFIL_BUCKET_ENTRIES);

		if (entry_is(entry, tgid) && (entry & PROFIL_ENTRY_EXEC_IDS) != exec_id)
			exec_one(entry, at, exec_id, secret);
	}
	return 0;
}

#endif
