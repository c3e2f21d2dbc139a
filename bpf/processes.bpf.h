/* processes.bpf.h - the process table from the kernel's side, and what it tells the daemon */
#ifndef PROFIL_PROCESSES_BPF_H
#define PROFIL_PROCESSES_BPF_H

#include <stdbool.h>

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "core/layout.h"
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

#endif
