/* maps.bpf.h - every map, declared once, and the one variable */
#ifndef PROFIL_MAPS_BPF_H
#define PROFIL_MAPS_BPF_H

#include "core/layout.h"

struct profil_tables tables;

/* Its address, which the compiler would rather work out again wherever it is used. */
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

/*
 * The counters: the first chunk, and the others, which the daemon adds when it needs them. A map
 * that is found in a map is two look-ups away, each a cache miss.
 */
struct profil_chunk_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct profil_chunk));
};

struct profil_chunk_map chunk_0 SEC(".maps");

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
	__u32 target;
	__u32 zero;
	__u64 charged_ns; /* how much of what it has run they stand for */
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
