/* maps.bpf.h - every map, declared once */
#ifndef PROFIL_MAPS_BPF_H
#define PROFIL_MAPS_BPF_H

#include "core/layout.h"

/* Which processes are targets; see struct profil_bucket. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PROFIL_BUCKETS);
	__type(key, __u32);
	__type(value, struct profil_bucket);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, PROFIL_MAX_TARGETS);
	__type(key, __u32);
	__type(value, struct profil_target);
} targets SEC(".maps");

/* The regions of all targets, those of one target side by side and sorted. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROFIL_MAX_REGIONS);
	__type(key, __u32);
	__type(value, struct profil_region);
} regions SEC(".maps");

struct profil_chunk_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct profil_chunk));
};

/* The counters. The daemon adds a chunk when it needs one; idle, there is none. */
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

/* What the clocks know of a thread that they count. */
struct profil_thread {
	/* The timer, when it last saw it: */
	__u64 ran_ns;
	__u32 moment; /* profil_moment(); 0: never */

	/* The events of one of its targets: */
	__u32 began;
	__u64 first_ns;	  /* what it had run when they began */
	__u64 charged_ns; /* that they have counted since */
	__u32 target;
	__u32 zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct profil_thread);
} threads SEC(".maps");

/* The rest is the daemon's, kept here for the next one. */
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

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct profil_journal);
} journal SEC(".maps");

#endif
