/* layout.h - what lies in the maps: shared by the BPF program, the daemon and readers of counters
 */
#ifndef PROFIL_LAYOUT_H
#define PROFIL_LAYOUT_H

#include <stddef.h>

#include <linux/types.h>

#include "bin.h"

/* Changes whenever a struct below does: a daemon takes over only maps of its own layout. */
#define PROFIL_LAYOUT_VERSION 15

/*
 * Counters lie in chunks, each the one element of a BPF array, with a dirty byte for every group
 * of 64 counters before them. A counter is named by one number all over: chunk and place in it.
 */
#define PROFIL_CHUNK_COUNTERS (1u << 18)
#define PROFIL_GROUP_COUNTERS 64
#define PROFIL_CHUNK_GROUPS (PROFIL_CHUNK_COUNTERS / PROFIL_GROUP_COUNTERS)
#define PROFIL_MAX_CHUNKS 1024

struct profil_chunk {
	__u8 dirty[PROFIL_CHUNK_GROUPS];
	__u32 count[PROFIL_CHUNK_COUNTERS];
};
_Static_assert(sizeof(struct profil_chunk) % 4096 == 0, "is mapped in whole pages");

/* Counters are handed out in whole groups; a buffer of @nbins takes so many. */
static inline __u64 profil_counters_for(__u32 nbins)
{
	return ((__u64)nbins + PROFIL_GROUP_COUNTERS - 1) / PROFIL_GROUP_COUNTERS *
	       PROFIL_GROUP_COUNTERS;
}

/*
 * A target's regions stand sorted by @lo; a pc belongs to the last one with lo <= pc, which covers
 * it unless profil_bin() says otherwise. Where the caller's regions overlap, libprofil has cut them
 * into such pieces: pieces of one buffer share its counters and name the first of them as @owner.
 */
struct profil_region {
	__u64 lo;
	struct profil_xform x;
	__u64 addr;  /* the buffer in the process's memory; 0: a reader maps the counters */
	__u32 first; /* the counter of bin 0 */
	__u32 owner; /* index, from the target's first region, of this buffer's first piece */
};
_Static_assert(sizeof(struct profil_region) == 56, "lies in a map");

#define PROFIL_MAX_REGIONS 65536   /* of all targets together */
#define PROFIL_TARGET_REGIONS 8193 /* 4096 regions, overlapping, cut into pieces */
#define PROFIL_REGION_STEPS 14	   /* halvings that search that many */
#define PROFIL_MAX_TARGETS 4096

/* Bits of a target's flags. */
enum profil_target_flags {
	PROFIL_TARGET_INHERIT = 1 << 0,	  /* fork children become targets */
	PROFIL_TARGET_FOLLOW = 1 << 1,	  /* an exec starts over instead of ending it */
	PROFIL_TARGET_RAW = 1 << 2,	  /* a pc in no region goes out as it is */
	PROFIL_TARGET_USER_ONLY = 1 << 3, /* ticks in kernel mode are dropped */
	PROFIL_TARGET_UNPRIVILEGED = 1
				     << 4, /* an exec that raises privileges ends it all the same */
	PROFIL_TARGET_TICK = 1 << 5,	   /* the CPU's own timer is its clock, thinned */
	PROFIL_TARGET_CLOSED = 1 << 6,	   /* it has stopped: what has not been counted never is */
};

/*
 * One address space that is being counted, and the regions that belong to it. The tick program
 * finds it through the process table; @total is added to before, the outcome after, so that a
 * reader who sees total = binned + unmatched + lost + raw knows that no tick is under way; if it
 * has been closed before, then no tick will ever touch its counters again.
 *
 * @time_ns is, where the timer is the clock, what all threads have run as far as it saw. With perf
 * events it is the first process's first thread's alone: how much of what that has run, in all its
 * life, the events stand for; 0 before the first. They and the scheduler may disagree by @slack_ns;
 * where that is 0, the events are right.
 */
struct profil_target {
	/* What a tick of it looks at: one cache line. */
	__u32 period_ns;
	__u16 flags; /* enum profil_target_flags */
	__u16 nregions;
	__u64 time_ns; /* what it has run that has been seen; see above */
	__u64 total;
	struct profil_xform near; /* the first region, up to the second; no span: look for it */
	__u32 near_first;
	__u32 slack_ns;

	__u32 region_first;
	__u32 began;   /* profil_moment() */
	__u32 members; /* entries of the process table that name this target */
	__u32 ended;   /* set once by the kernel: the last of them has gone */
	__u64 unmatched;
	__u64 lost;
	__u64 raw;
	__u32 found; /* the region that the last search found: the next looks at it first */
	__u32 zero;  /* of which the verifier does not know that it is */
	__u64 none[2];
};
_Static_assert(offsetof(struct profil_target, region_first) == 64, "one cache line in a map");
_Static_assert(sizeof(struct profil_target) == 128, "two cache lines in a map");

/* A time of CLOCK_MONOTONIC, in milliseconds or so, to be compared by the sign of a difference. */
static inline __u32 profil_moment(__u64 ns)
{
	return (__u32)(ns >> 20);
}

/*
 * A mark for each target that has had a tick, or has ended, since the daemon took the mark away. A
 * tick looks at it last: what it brought is found with this mark, or by the total, or with the next
 * one. Readers' targets are marked for good, so that none of theirs is news.
 */
struct profil_news {
	__u8 target[PROFIL_MAX_TARGETS];
	__u32 awaited; /* the daemon sleeps: tell it of the next mark */
	__u32 zero;
};

/*
 * The process table: a bucket is one cache line of eight entries, an entry is a process and one of
 * its targets. A process that is in several profiles has several entries.
 */
#define PROFIL_BUCKETS 8192
#define PROFIL_BUCKET_ENTRIES 8

struct profil_bucket {
	__u64 entry[PROFIL_BUCKET_ENTRIES];
};
_Static_assert(sizeof(struct profil_bucket) == 64, "one cache line in a map");

/*
 * What ticks look at, as one variable of the BPF program: its parts are at addresses that the
 * program knows, where an element of a map would have to be looked up. The daemon maps them.
 */
struct profil_tables {
	struct profil_bucket bucket[PROFIL_BUCKETS];
	struct profil_target target[PROFIL_MAX_TARGETS];
	__u64 start[PROFIL_MAX_REGIONS]; /* each region's @lo once more: searched, close together */
	struct profil_news news;
	__u64 tick_function; /* of the timer that a busy CPU takes anyway; 0: not yet seen */
	__u32 lives;	     /* see PROFIL_ENTRY_LIFE */
	__u32 zero;
};
_Static_assert(offsetof(struct profil_tables, target) % (1 << 16) == 0, "begins with a page");
_Static_assert(offsetof(struct profil_tables, start) % (1 << 16) == 0, "begins with a page");
_Static_assert(offsetof(struct profil_tables, news) % (1 << 16) == 0, "begins with a page");

#define PROFIL_ENTRY_LIVE (1u << 31)	/* tells target 0 from an empty entry */
#define PROFIL_ENTRY_NEWBORN (1u << 30) /* forked or exec'd: has no counters of its own yet */
#define PROFIL_ENTRY_TOLD (1u << 29)	/* the daemon has been told of this newborn */
#define PROFIL_ENTRY_FORKED (1u << 15)	/* shares the target of the process that forked it */
/*
 * Tells one life of a process from the next: it starts at any value with a fork, and is one more
 * after every exec that is followed. Nobody takes one image, or one owner of a pid, for another.
 */
#define PROFIL_ENTRY_LIFE (1u << 16)
#define PROFIL_ENTRY_LIVES (0x1fffu << 16)
/* Which exec's image the kernel knows it to run, by the low end of their number; 0: not known. */
#define PROFIL_ENTRY_IMAGE (1u << 12)
#define PROFIL_ENTRY_IMAGES (7u << 12)
#define PROFIL_ENTRY_TARGET (PROFIL_MAX_TARGETS - 1u) /* no entry names what is not there */
_Static_assert((PROFIL_MAX_TARGETS & (PROFIL_MAX_TARGETS - 1)) == 0, "a mask of low bits");

static inline __u64 profil_entry(__u32 tgid, __u32 bits)
{
	return (__u64)tgid << 32 | PROFIL_ENTRY_LIVE | bits;
}

static inline __u32 profil_entry_tgid(__u64 entry)
{
	return (__u32)(entry >> 32);
}

static inline __u32 profil_entry_target(__u64 entry)
{
	return (__u32)entry & PROFIL_ENTRY_TARGET;
}

static inline __u32 profil_entry_life(__u64 entry)
{
	return ((__u32)entry & PROFIL_ENTRY_LIVES) / PROFIL_ENTRY_LIFE;
}

/* Says whether the daemon knows of the process: of a child without a tick it does not. */
static inline __u32 profil_entry_known(__u64 entry)
{
	return !(entry & PROFIL_ENTRY_NEWBORN) || (entry & PROFIL_ENTRY_TOLD);
}

/* @exec_id is the kernel's number of execs up to this image. */
static inline __u32 profil_entry_image(__u64 exec_id)
{
	return (1 + (__u32)exec_id % 7) * PROFIL_ENTRY_IMAGE;
}

/* The entry of the same process once it has exec'd, and runs @image. */
static inline __u64 profil_entry_exec(__u64 entry, __u32 image)
{
	__u32 life = ((__u32)entry + PROFIL_ENTRY_LIFE) & PROFIL_ENTRY_LIVES;
	__u32 told = profil_entry_known(entry) ? PROFIL_ENTRY_TOLD : 0;

	entry &= ~(__u64)(PROFIL_ENTRY_LIVES | PROFIL_ENTRY_IMAGES);
	return entry | life | image | PROFIL_ENTRY_NEWBORN | told;
}

/* @seed is drawn at load, so that nobody can choose pids that share a bucket. */
static inline __u32 profil_bucket_of(__u32 tgid, __u32 seed)
{
	return (tgid ^ seed) * 2654435769u >> 19;
}
_Static_assert(PROFIL_BUCKETS == 1 << (32 - 19), "the bucket is the top bits of the hash");

/* What the kernel tells the daemon through the ring. */
enum profil_event_kind {
	PROFIL_EVENT_RAW = 1, /* a tick whose pc is in no region of a target that wants to know */
	PROFIL_EVENT_EXEC,
	PROFIL_EVENT_EXIT, /* or an exec that is not followed */
	PROFIL_EVENT_NEWS, /* a mark that is awaited; says nothing but that */
};

/* A tick's pc while execve() is at work, for who may not look into the new image. */
#define PROFIL_PC_NOWHERE 1 /* in the page at 0 nobody has code */

struct profil_event {
	__u64 pc;
	__u32 tgid;
	__u32 target;
	__u16 kind;
	__u16 life; /* of the process: see PROFIL_ENTRY_LIFE */
	__u32 tid;  /* the thread that it happened to */
};
_Static_assert(sizeof(struct profil_event) == 24, "lies in a ring");

/*
 * The daemon's own, in maps so that the next daemon goes on where a killed one stopped. The kernel
 * never looks at it.
 */
struct profil_state {
	__u32 version; /* PROFIL_LAYOUT_VERSION */
	__u32 bucket_seed;
};

/* Whose a target is. */
struct profil_owner {
	__u64 cookie_addr;
	__u8 cookie[16];
	__u64 image; /* in which it is */
	__u64 ncounters;
	__u64 nbins;
	__u32 live; /* written last, cleared first */
	__u32 tgid; /* 0: only fork children are left */
	__u32 uid;
	__u32 flags; /* enum profil_start_flags */
	__u32 width;
	__u32 cap;
	__u32 counter_first;
	__u32 zero;
};
_Static_assert(sizeof(struct profil_owner) == 80, "lies in a map");

/* The daemon's half of a target's ticks. */
struct profil_ledger {
	__u64 drained;	 /* taken from the counters */
	__u64 events;	 /* that came as pcs: binned by the daemon, or ... */
	__u64 unmatched; /* ... in no region */
	__u64 spilt;	 /* of all these, what found no room in the buffer */
	__u64 pcs;	 /* stored as they are (PROFIL_START_PCS) */
};
_Static_assert(sizeof(struct profil_ledger) == 40, "lies in a map");

/*
 * The one span of counters that is on its way into a buffer. Whoever finds it not idle takes it
 * the rest of the way: what @count holds has been taken from the counters, and in phase WRITING a
 * counter of the buffer that is not as in @before has been written already. @before says nothing
 * where @count is 0.
 */
#define PROFIL_SPAN 8192

enum profil_journal_phase {
	PROFIL_JOURNAL_IDLE,
	PROFIL_JOURNAL_TAKING,
	PROFIL_JOURNAL_WRITING,
};

struct profil_journal {
	__u32 phase;
	__u32 target;
	__u32 owner; /* the region */
	__u32 bin;
	__u32 n;
	__u32 zero;
	__u64 drained; /* of the target's ledger, before */
	__u64 spilt;
	__u32 count[PROFIL_SPAN];
	__u32 before[PROFIL_SPAN];
};
_Static_assert(sizeof(struct profil_journal) == 40 + 8 * PROFIL_SPAN, "lies in a map");

#define PROFIL_RING_BYTES (1u << 18) /* mapped twice, a tenth of what the daemon takes */

#endif
