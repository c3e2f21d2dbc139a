/* tick.bpf.h - one tick: find the region, bin the pc, count */
#ifndef PROFIL_TICK_BPF_H
#define PROFIL_TICK_BPF_H

#include <stddef.h>

#include <bpf/bpf_tracing.h>

#include "core/bin.h"
#include "kernel.bpf.h"
#include "processes.bpf.h"

/* A tick without a counter goes out as it is, or is counted as what it is. */
static __always_inline void miss(struct profil_target *target, __u64 entry, __u64 pc)
{
	if (!(entry & PROFIL_ENTRY_NEWBORN) && !(target->flags & PROFIL_TARGET_RAW))
		__sync_fetch_and_add(&target->unmatched, 1);
	else if (tell(PROFIL_EVENT_RAW, entry, pc))
		__sync_fetch_and_add(&target->raw, 1);
	else
		__sync_fetch_and_add(&target->lost, 1);
}

/* Returns the last of the target's regions that begins at or below @pc. */
static __always_inline struct profil_region *find(const struct profil_target *target, __u64 pc)
{
	struct profil_region *found = NULL;
	__u32 low = 0, high = target->nregions;

	for (int i = 0; i < PROFIL_REGION_STEPS && low < high; i++) {
		__u32 middle = (low + high) / 2;
		__u32 key = target->region_first + middle;
		struct profil_region *region = bpf_map_lookup_elem(&regions, &key);

		if (!region)
			return NULL;
		if (region->lo <= pc) {
			found = region;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return found;
}

/*
 * Adds 1, never past the top; false where the counter is full. Far from the top, where every
 * counter of a lifetime is, a plain atomic add cannot pass it: fewer CPUs add at once than are
 * left. Near it each step is compared, and a try fails only where another CPU's succeeded.
 */
#define COUNTER_NEAR_TOP 0xffff0000u
#define COUNTER_TRIES 16

static __always_inline bool add_one(__u32 *counter)
{
	__u32 old = *(volatile __u32 *)counter;

	if (old < COUNTER_NEAR_TOP) {
		__sync_fetch_and_add(counter, 1);
		return true;
	}
	for (int i = 0; i < COUNTER_TRIES && old != ~(__u32)0; i++) {
		__u32 seen = __sync_val_compare_and_swap(counter, old, old + 1);

		if (seen == old)
			return true;
		old = seen;
	}
	return false;
}

/* Adds 1 to @counter, marks its group dirty; false where it is gone or full. */
static __always_inline bool count(__u32 counter)
{
	__u32 chunk_key = counter / PROFIL_CHUNK_COUNTERS, dirty_key = 0;
	__u32 place = counter % PROFIL_CHUNK_COUNTERS;
	__u32 page_key = 1 + place / PROFIL_PAGE_COUNTERS;
	void *chunk = bpf_map_lookup_elem(&chunks, &chunk_key);
	struct profil_dirty *dirty;
	struct profil_page *page;

	if (!chunk)
		return false;
	page = bpf_map_lookup_elem(chunk, &page_key);
	dirty = bpf_map_lookup_elem(chunk, &dirty_key);
	if (!page || !dirty)
		return false;

	if (!add_one(&page->count[place % PROFIL_PAGE_COUNTERS]))
		return false;
	dirty->group[place / PROFIL_GROUP_COUNTERS] = 1;
	return true;
}

/*
 * Counts one tick of @entry's process at @pc. Not static: so the verifier reads it once, not once
 * for each place in a bucket.
 */
__attribute__((noinline)) int hit(__u64 entry, __u64 pc)
{
	struct profil_target *target = target_of(entry);
	struct profil_region *region = NULL;
	__u32 bin = PROFIL_NO_BIN;

	if (!target)
		return 0;
	__sync_fetch_and_add(&target->total, 1);
	if (!(entry & PROFIL_ENTRY_NEWBORN))
		region = find(target, pc);
	if (region)
		bin = profil_bin(&region->x, pc);

	if (bin == PROFIL_NO_BIN)
		miss(target, entry, pc);
	else if (!count(region->first + bin))
		__sync_fetch_and_add(&target->lost, 1);
	return 0;
}

/*
 * The pc at which the thread left user mode, whatever it does now; 0 for a thread that never was
 * there, as an io_uring worker.
 */
static __always_inline __u64 user_pc(void)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	saved_regs *regs = (void *)bpf_task_pt_regs(task);

	return regs_pc(regs);
}

SEC("perf_event")
int tick(struct bpf_perf_event_data *ctx)
{
	__u32 tgid = current_tgid();
	struct profil_bucket *bucket = bucket_of(tgid);
	bool user_mode = regs_user_mode(&ctx->regs);
	__u64 pc = regs_pc(&ctx->regs);

	if (!bucket)
		return 0;
	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		__u64 entry = read_entry(bucket, i);
		struct profil_target *target;

		if (!entry_is(entry, tgid))
			continue;
		target = target_of(entry);
		if (!target || target->period_ns != ctx->sample_period)
			continue;
		if (!user_mode && (target->flags & PROFIL_TARGET_USER_ONLY))
			continue;
		if (!user_mode)
			pc = user_pc();
		if (pc)
			hit(entry, pc);
	}
	return 0;
}

#endif
