/* shared_maps.h - the contents of the maps that the BPF programs and the daemon share */
#ifndef PROFIL_CORE_SHARED_MAPS_H
#define PROFIL_CORE_SHARED_MAPS_H

#include <stddef.h>

#include <linux/types.h>

#include "bin.h"
#include "observers.h"

/* Raised with every change to a struct below: a daemon takes over only maps of its own version. */
#define PROFIL_LAYOUT_VERSION 31

/*
 * Counters are in chunks. A chunk is the one element of a BPF array: a dirty flag for each block of
 * 64 counters, then the counters. A counter has one number: chunk * PROFIL_CHUNK_COUNTERS + its
 * place in the chunk. Overview: src/profild/bpf/counters/counter_pool.c.
 */
#define PROFIL_CHUNK_COUNTERS (1u << 18)
#define PROFIL_BLOCK_COUNTERS 64
#define PROFIL_CHUNK_BLOCKS (PROFIL_CHUNK_COUNTERS / PROFIL_BLOCK_COUNTERS)
#define PROFIL_MAX_CHUNKS 1024

struct profil_chunk {
	__u8 dirty[PROFIL_CHUNK_BLOCKS];
	__u32 count[PROFIL_CHUNK_COUNTERS];
};
_Static_assert(sizeof(struct profil_chunk) % 4096 == 0, "is mapped in whole pages");

/* The counters of a buffer with @nbins bins: whole blocks. */
static inline __u64 profil_counters_for(__u32 nbins)
{
	return ((__u64)nbins + PROFIL_BLOCK_COUNTERS - 1) / PROFIL_BLOCK_COUNTERS *
	       PROFIL_BLOCK_COUNTERS;
}

/*
 * A target's regions are sorted by @lo. Only the last one with lo <= pc may count a pc, and
 * profil_bin() says whether it does. libprofil cuts regions that overlap into pieces that do not
 * (overlap.h). Pieces of one buffer share its counters and name the first of them as @owner.
 */
struct profil_region {
	__u64 lo;
	struct profil_xform x;
	__u64 addr;  /* the buffer in the process's memory */
	__u32 first; /* the counter of bin 0 */
	__u32 owner; /* index, from the target's first region, of this buffer's first piece */
};
_Static_assert(sizeof(struct profil_region) == 56, "lies in a map");

#define PROFIL_MAX_REGIONS 65536   /* of all targets together */
#define PROFIL_TARGET_REGIONS 8193 /* 4096 overlapping regions, cut into pieces */
#define PROFIL_REGION_STEPS 14	   /* of a binary search in so many */
#define PROFIL_MAX_TARGETS 4096

/* Bits of a target's flags. */
enum profil_target_flags {
	PROFIL_TARGET_INHERIT = 1 << 0,	  /* fork children get an entry */
	PROFIL_TARGET_FOLLOW = 1 << 1,	  /* a process stays in the target after an exec */
	PROFIL_TARGET_RAW = 1 << 2,	  /* a pc in no region goes to the daemon as an event */
	PROFIL_TARGET_USER_ONLY = 1 << 3, /* samples in kernel mode are dropped */
	/* An exec of an image that the owner may not read removes the process in spite of FOLLOW */
	PROFIL_TARGET_UNPRIVILEGED = 1 << 4,
	PROFIL_TARGET_TICK = 1 << 5,	/* its clock is the timer tick, else the perf events */
	PROFIL_TARGET_STACKS = 1 << 8,	/* an attachment's: counts stacks as well */
	PROFIL_TARGET_OBSERVE = 1 << 7, /* an attachment's: counts places, in the table of @slot */
	PROFIL_TARGET_CLOSED = 1 << 6,	/* it has stopped: no further sample is counted */
	PROFIL_TARGET_PERF = 1 << 9,	/* perf events even where the tick has its rate */
	/*
	 * An attachment's: these bits are the number of the event whose samples it counts, or 0 if
	 * it counts a clock's.
	 */
	PROFIL_TARGET_EVENT = 1 << 10, /* number 1 */
	PROFIL_TARGET_EVENTS = 63 << 10,
	/* A target counts the samples that have the same value in these bits. */
	PROFIL_TARGET_CLOCKS = PROFIL_TARGET_TICK | PROFIL_TARGET_EVENTS,
};

/* Which of its threads' time without a CPU a target counts. */
enum profil_waits {
	PROFIL_WAITS_NONE,
	PROFIL_WAITS_SLEEPS, /* from the switch that begins a sleep to the one that ends it */
	PROFIL_WAITS_STATES, /* all, by enum profil_cpu_state */
};

/* The cookie of an event's links: these bits, the event's number as in flags, and a generation. */
#define PROFIL_COOKIE_FREQUENCY 1 /* each sample counts as one, whatever the event's period */
#define PROFIL_COOKIE_ADAPTED 2	  /* the kernel changes the period */
#define PROFIL_COOKIE_GENERATION (1ull << 32)

/*
 * A profiled address space and its regions, or an attachment. Samples find it through the process
 * table. A sample adds to @total first and to its outcome last, so total = binned + unmatched +
 * lost + raw means that no sample is in flight. If the target has been closed before that, no
 * sample will touch its counters again.
 */
struct profil_target {
	/* All that a sample uses: one cache line. */
	__u32 period_ns; /* of CPU time; of an event: events for each sample */
	__u16 flags;	 /* enum profil_target_flags */
	__u16 nregions;
	__u32 region_first;
	__u32 members; /* entries of the process table that name this target */
	__u64 epoch;   /* its number: see struct profil_clock */
	__u64 total;
	__u64 elapsed_ns; /* CPU time that samples have stood for: see cpu_time.bpf.h */
	__u64 unmatched;
	__u64 lost;
	__u64 credit_ns; /* account of the first thread of a process with a profile of its own */

	__u32 ended;	  /* set by the side that removes its last member */
	__u32 slot;	  /* of struct profil_observer and the table (OBSERVE) */
	__u32 user;	  /* slot in tables.user */
	__u32 waits;	  /* enum profil_waits (OBSERVE) */
	__u64 unfollowed; /* children for which there was no room */
	__u64 raw;
	__u64 started_ns;     /* CLOCK_BOOTTIME */
	__u64 unseen_ns;      /* a profile's own: of ended threads, not yet charged to a place */
	__u64 waits_since_ns; /* CLOCK_BOOTTIME: waits before it are not counted */
	__u32 latency;	      /* its CPU time is divided by the threads of the process that run */
	__u32 none;
};
_Static_assert(offsetof(struct profil_target, ended) == 64, "one cache line in a map");
_Static_assert(sizeof(struct profil_target) == 128, "two cache lines in a map");

/* The clocks: see bpf/cpu_time.bpf.h. */
struct profil_clock {
	__u64 epoch;	     /* targets started so far */
	__u32 period_ns;     /* of the perf events; the daemon sets it when it sets theirs */
	__u32 tolerance_ns;  /* between events and scheduler; 0: no CPU-time account */
	__u64 tick_function; /* of the timer tick; 0: not seen yet */
	__u32 owner;	     /* the daemon whose perf events count */
	__u32 zero;
};

/*
 * A dirty flag for each target, set by the kernel after a sample or when the target has ended,
 * cleared by the daemon before it drains. Targets of attachments are always dirty, so that their
 * samples post no event. Overview: src/profild/profile/sync_timer.c.
 */
struct profil_dirty {
	__u8 target[PROFIL_MAX_TARGETS];
	__u32 wakeup; /* the daemon sleeps: post an event with the next flag */
	__u32 zero;
};

/* What the kernel charges to one user. */
struct profil_user {
	__u32 uid;
	__u32 targets;	/* the daemon's; 0: the slot is free */
	__u32 children; /* entries of the process table for children that inherited a target */
	__u32 children_max;
	__u32 raw_sent;		/* events of kind RAW, ever, ... */
	__u32 raw_taken;	/* ... and how many of them the daemon has taken from the ring */
	__u32 root;		/* not merely uid 0: a user of its own */
	__u32 children_reserve; /* the part of tables.children_max that it may not use */
};
_Static_assert(sizeof(struct profil_user) == 32, "two of them in a cache line");

/* A user's limit of RAW events in the ring: an eighth of it. */
#define PROFIL_RAW_IN_FLIGHT 2048

/* The process table: see bpf/process_table.bpf.h. A bucket is one cache line. */
#define PROFIL_BUCKETS 16384
#define PROFIL_BUCKET_ENTRIES 8
#define PROFIL_BUCKET_SHIFT (32 - 14)

struct profil_bucket {
	__u64 entry[PROFIL_BUCKET_ENTRIES];
};
_Static_assert(sizeof(struct profil_bucket) == 64, "one cache line in a map");

/*
 * What samples use, as one variable of the BPF program: its parts are at known addresses, while an
 * element of a map needs a look-up. The daemon maps it.
 */
struct profil_tables {
	struct profil_bucket bucket[PROFIL_BUCKETS];
	struct profil_target target[PROFIL_MAX_TARGETS];
	struct profil_user user[PROFIL_MAX_TARGETS];
	struct profil_dirty dirty;
	struct profil_clock clock;
	__u32 displaced;   /* entries that are in the second bucket of their process */
	__u32 generations; /* see PROFIL_ENTRY_GENERATION */
	__u32 children;	   /* of all users */
	__u32 children_max;
	__u32 users;	    /* the daemon's: slots of tables.user that are in use */
	__u32 pid_ns_level; /* of the daemon's pid namespace; 0: the initial one */
	__u32 events;	    /* that are linked to a program, besides the clocks */
	__u32 states;	    /* attachments by states, for which wake-ups count */
	__u32 wakers;	    /* those of them that want to know the wakers */
	__u32 waits;	    /* attachments that count any waits */
	__u32 latency;	    /* those that want to know which threads run */
	struct profil_wide wide;
	__u32 owner[PROFIL_MAX_OBSERVERS]; /* of each slot of attachments: its slot in user */
};

#define PROFIL_ENTRY_LIVE (1u << 31)	/* distinguishes target 0 from an empty entry */
#define PROFIL_ENTRY_UNBOUND (1u << 30) /* forked: has no counters of its own yet */
#define PROFIL_ENTRY_FORKED (1u << 15)	/* inherited; charged to the target's user as a child */
/* Distinguishes incarnations of a pid: a new one for each fork. */
#define PROFIL_ENTRY_GENERATION (1u << 16)
#define PROFIL_ENTRY_GENERATIONS (0x1fffu << 16)
/* 1 + the process's number of execs modulo 7; 0: unknown. */
#define PROFIL_ENTRY_EXEC_ID (1u << 12)
#define PROFIL_ENTRY_EXEC_IDS (7u << 12)
#define PROFIL_ENTRY_TARGET (PROFIL_MAX_TARGETS - 1u) /* a mask: always a valid index */
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

static inline __u32 profil_entry_generation(__u64 entry)
{
	return ((__u32)entry & PROFIL_ENTRY_GENERATIONS) / PROFIL_ENTRY_GENERATION;
}

/* @exec_id is the kernel's self_exec_id: the task's number of execs. */
static inline __u32 profil_entry_exec_id(__u64 exec_id)
{
	return (1 + (__u32)exec_id % 7) * PROFIL_ENTRY_EXEC_ID;
}

/* @entry after an exec: with the new @exec_id. */
static inline __u64 profil_entry_execd(__u64 entry, __u32 exec_id)
{
	return (entry & ~(__u64)PROFIL_ENTRY_EXEC_IDS) | exec_id;
}

/*
 * The bucket number of @tgid: @which is 0 for the first, 1 for the second. @seed is random, so that
 * no user can choose pids that share a bucket.
 */
static inline __u32 profil_bucket_of(__u32 tgid, __u32 seed, __u32 which)
{
	return (tgid ^ seed) * (which ? 2246822507u : 2654435769u) >> PROFIL_BUCKET_SHIFT;
}
_Static_assert(PROFIL_BUCKETS == 1 << (32 - PROFIL_BUCKET_SHIFT), "the top bits of the hash");

/* From so many entries in the first bucket on, the second one is used if it has fewer. */
#define PROFIL_BUCKET_HALF (PROFIL_BUCKET_ENTRIES / 2)
/* Entries of a bucket that children may use: one is reserved for the daemon's insertions. */
#define PROFIL_BUCKET_CHILDREN (PROFIL_BUCKET_ENTRIES - 1)

/* What the kernel posts to the daemon. */
enum profil_event_kind {
	PROFIL_EVENT_RAW = 1, /* a sample as a pc: of an unbound child, or a target that wants it */
	PROFIL_EVENT_DIRTY,   /* a dirty flag was set while the daemon slept */
};

/* The pc of a sample during execve(), for an owner that may not read the new image. */
#define PROFIL_PC_NOWHERE 1 /* no process has code in the page at 0 */

struct profil_event {
	__u64 pc;
	__u32 tgid;
	__u32 target;
	__u16 kind;
	__u16 generation; /* of the process: see PROFIL_ENTRY_GENERATION */
	__u32 zero;
};
_Static_assert(sizeof(struct profil_event) == 24, "lies in a ring");

/*
 * The daemon's own state, which the kernel does not use. It is in maps so that the next daemon can
 * take over the profiles of one that was killed.
 */
struct profil_state {
	__u32 version; /* PROFIL_LAYOUT_VERSION */
	__u32 bucket_seed;
};

/* The owner of a target: all that the next daemon needs to continue the profile. */
struct profil_owner {
	__u64 cookie_addr;
	__u8 cookie[16];
	__u64 image; /* identifies the address space: see memory_image() */
	__u64 ncounters;
	__u64 nbins;
	__u32 live; /* written last, cleared first */
	__u32 tgid; /* 0: only fork children are left */
	__u32 uid;
	__u32 flags; /* enum profil_start_flags */
	__u32 width;
	__u32 cap;
	__u32 counter_first;
	__u32 root; /* the user is root, not merely uid 0 */
};
_Static_assert(sizeof(struct profil_owner) == 80, "lies in a map");

/* The daemon's counts of a target's samples. */
struct profil_ledger {
	__u64 drained;	 /* taken from the counters */
	__u64 events;	 /* samples that arrived as pcs, ... */
	__u64 unmatched; /* ... of these in no region */
	__u64 dropped;	 /* of drained and events: saturated, or not written to the buffer */
	__u64 pcs;	 /* pcs stored in the buffer (PROFIL_START_PCS) */
};
_Static_assert(sizeof(struct profil_ledger) == 40, "lies in a map");

/* Counters in one span, at most. */
#define PROFIL_SPAN 8192

#define PROFIL_RING_BYTES (1u << 19) /* 16384 events */

#endif
