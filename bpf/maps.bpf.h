/* maps.bpf.h - the maps of the profil engine, and the tables that all programs share */
#ifndef PROFIL_BPF_MAPS_BPF_H
#define PROFIL_BPF_MAPS_BPF_H

#include "core/shared_maps.h"

struct profil_tables tables;

/* Keeps the address @p in a register; clang would compute it again at each use. */
#define PLACE(p)                                \
	({                                      \
		typeof(p) place = (p);          \
		asm volatile("" : "+r"(place)); \
		place;                          \
	})

/* The regions of all targets, those of one target side by side and sorted. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROFIL_MAX_REGIONS);
	__type(key, __u32);
	__type(value, struct profil_region);
} regions SEC(".maps");

/* The counters: chunks, which the daemon adds as needed. */
struct profil_chunk_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct profil_chunk));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PROFIL_MAX_CHUNKS);
	__uint(key_size, sizeof(__u32));
	__array(values, struct profil_chunk_map);
} chunks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, PROFIL_RING_BYTES);
} events SEC(".maps");

/* Where a thread's latest sample on the tick was counted for one target: see thread_end.bpf.h. */
struct profil_last {
	__u64 epoch;  /* of the target; 0: free */
	__u64 key[2]; /* an attachment's places, [1] FOLDED; a profile's pc and entry */
	__u32 node;
	__u16 target;
	__u16 state; /* enum last_state */
};

/* Targets of one thread whose latest places are kept. */
#define PROFIL_LASTS 4

/* The CPU-time accounts of a thread: see cpu_time.bpf.h. */
struct profil_thread {
	__u64 ticked_ns;  /* CPU time that has been charged: as of its latest tick, ... */
	__u64 tick_epoch; /* ... and tables.clock.epoch then; 0: it has had no tick */
	__u64 credit_ns;  /* the CPU time that its events have stood for */
	__u64 event_epoch;
	__u64 paid_ns;	   /* CPU time at its latest exec, or at its exit without a tick */
	__u64 out_ns;	   /* CLOCK_MONOTONIC when its latest sleep began; 0: none yet, ... */
	__u64 out_ran_ns;  /* ... and its CPU time then */
	__u64 slept_ns;	   /* the time of that sleep, or 0 */
	__u64 overlap_ns;  /* of earlier sleeps with CPU time, still to be taken from a sleep */
	__u64 out_epoch;   /* tables.clock.epoch when it last lost its CPU; 0: not yet observed */
	__u64 lost_ran_ns; /* its CPU time then, until it was seen to get one again; else 0 */
	__u64 lock;	   /* the kernel's lock that it waits for, 0: none, ... */
	__u64 lock_epoch;  /* ... and tables.clock.epoch then */
	struct profil_last last[PROFIL_LASTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct profil_thread);
} threads SEC(".maps");

/* tick_or_exit() with places, once an attachment has needed it; none before. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} tick_places SEC(".maps");

/* The maps below are the daemon's own state, kept for the next daemon. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct profil_state);
} state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROFIL_MAX_TARGETS);
	__type(key, __u32);
	__type(value, struct profil_owner);
} owners SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PROFIL_MAX_TARGETS);
	__type(key, __u32);
	__type(value, struct profil_ledger);
} ledgers SEC(".maps");

#endif
