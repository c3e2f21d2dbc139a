/* processes.bpf.h - the process table from the kernel's side, and what it tells the daemon */
#ifndef PROFIL_PROCESSES_BPF_H
#define PROFIL_PROCESSES_BPF_H

#include <stdbool.h>

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "core/layout.h"
#include "kernel.bpf.h"
#include "maps.bpf.h"

/* See profil_bucket_of(). */
const volatile __u32 bucket_seed;

static __always_inline struct profil_bucket *bucket_by(__u32 tgid, __u32 seed)
{
	return PLACE(&tables.bucket[profil_bucket_of(tgid, seed)]);
}

static __always_inline struct profil_bucket *bucket_of(__u32 tgid)
{
	return bucket_by(tgid, bucket_seed);
}

static __always_inline struct profil_target *target_of(__u64 entry)
{
	return PLACE(&tables.target[profil_entry_target(entry)]);
}

/* Entries change under our feet: each is read exactly once. */
static __always_inline __u64 read_entry(const struct profil_bucket *bucket, int i)
{
	return *(const volatile __u64 *)&bucket->entry[i];
}

/* Live, and of @tgid: in one comparison, which every tick of every process makes eight times. */
static __always_inline bool entry_is(__u64 entry, __u32 tgid)
{
	return (entry ^ profil_entry(tgid, 0)) < PROFIL_ENTRY_LIVE;
}

/* Says whether @task runs the image that @entry is known to be of. */
static __always_inline bool is_image(const struct task_struct *task, __u64 entry)
{
	return (entry & PROFIL_ENTRY_IMAGES) == profil_entry_image(task->self_exec_id);
}

/* Returns false where the ring is full. */
static __always_inline bool tell(__u32 kind, __u64 entry, __u64 pc)
{
	struct profil_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event)
		return false;
	event->pc = pc;
	event->tgid = profil_entry_tgid(entry);
	event->target = profil_entry_target(entry);
	event->kind = (__u16)kind;
	event->life = (__u16)profil_entry_life(entry);
	event->tid = (__u32)bpf_get_current_pid_tgid();
	bpf_ringbuf_submit(event, 0);
	return true;
}

/*
 * Once between two passes of the mirror. The exchange is a full barrier: the daemon finds the mark,
 * or is found waiting for it. Where the ring is full, it is awake.
 */
static __attribute__((noinline)) int mark_first(__u64 entry)
{
	tables.news.target[profil_entry_target(entry)] = 1;
	if (__sync_lock_test_and_set(&tables.news.awaited, 0))
		tell(PROFIL_EVENT_NEWS, entry, 0);
	return 0;
}

/* Has the mirror look at the target of @entry. */
static __always_inline void mark_news(__u64 entry)
{
	if (!*(volatile __u8 *)&tables.news.target[profil_entry_target(entry)])
		mark_first(entry);
}

static __always_inline bool insert(__u64 entry)
{
	struct profil_bucket *bucket = bucket_of(profil_entry_tgid(entry));

	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		if (!read_entry(bucket, i) &&
		    !__sync_val_compare_and_swap(&bucket->entry[i], 0, entry))
			return true;
	}
	return false;
}

/*
 * Puts @next into the place of *@entry. A first tick in between may have marked it as told of:
 * *@entry says so then.
 */
static __always_inline bool change(struct profil_bucket *bucket, int i, __u64 *entry, __u64 next)
{
	__u64 seen = __sync_val_compare_and_swap(&bucket->entry[i], *entry, next);

	if (seen == *entry)
		return true;
	if (seen != (*entry | PROFIL_ENTRY_TOLD))
		return false;
	*entry = seen;
	return __sync_val_compare_and_swap(&bucket->entry[i], seen,
					   next ? next | PROFIL_ENTRY_TOLD : 0) == seen;
}

/* Takes @entry out of its place, and notes when it was its target's last. */
static __always_inline void take_out(struct profil_bucket *bucket, int i, __u64 entry,
				     struct profil_target *target)
{
	bool was_there = change(bucket, i, &entry, 0);

	if ((target->flags & PROFIL_TARGET_RAW) && profil_entry_known(entry))
		tell(PROFIL_EVENT_EXIT, entry, 0);
	if (was_there && __sync_fetch_and_add(&target->members, -1) == 1) {
		__sync_lock_test_and_set(&target->ended, 1); /* before the mark is looked at */
		mark_news(entry);
	}
}

/*
 * Takes @tgid, whose process has gone, out of all its targets. Not static: so the verifier reads it
 * once, not once for each way that leads here.
 */
__attribute__((noinline)) int take_out_all(__u32 tgid)
{
	struct profil_bucket *bucket = bucket_of(tgid);

	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		__u64 entry = read_entry(bucket, i);

		if (entry_is(entry, tgid))
			take_out(bucket, i, entry, target_of(entry));
	}
	return 0;
}

/*
 * The new image is none of the target's business, unless its owner follows it and may. Not static,
 * as take_out_all().
 */
__attribute__((noinline)) int exec_of(__u32 tgid, __u32 image, bool secret)
{
	struct profil_bucket *bucket = bucket_of(tgid);

	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		__u64 entry = read_entry(bucket, i);
		struct profil_target *target;

		if (!entry_is(entry, tgid) || (entry & PROFIL_ENTRY_IMAGES) == image)
			continue;
		target = target_of(entry);
		if ((target->flags & PROFIL_TARGET_FOLLOW) &&
		    !(secret && (target->flags & PROFIL_TARGET_UNPRIVILEGED))) {
			__u64 next = profil_entry_exec(entry, image);

			change(bucket, i, &entry, next);
			if (profil_entry_known(entry))
				tell(PROFIL_EVENT_EXEC, next, 0);
		} else {
			take_out(bucket, i, entry, target);
		}
	}
	return 0;
}

#endif
