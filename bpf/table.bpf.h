/* table.bpf.h - look-up of an attachment's table, its pages and the counters of its header */
#ifndef PROFIL_BPF_TABLE_BPF_H
#define PROFIL_BPF_TABLE_BPF_H

#include <stdbool.h>

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "core/observe_maps.h"
#include "core/observers.h"
#include "pid.bpf.h"

struct profil_page {
	__u8 byte[PROFIL_TABLE_PAGE];
};

/* With BPF_F_INNER_MAP the array of maps takes arrays of any number of pages. */
struct profil_table_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct profil_page));
};

/* The tables, by slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PROFIL_MAX_OBSERVERS);
	__uint(key_size, sizeof(__u32));
	__array(values, struct profil_table_map);
} observed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROFIL_MAX_OBSERVERS);
	__type(key, __u32);
	__type(value, struct profil_observer);
} observers SEC(".maps");

/* The table of one attachment, for one sample. */
struct table {
	void *map;
	const struct profil_observer *observer;
};

static __always_inline void *table_page(const struct table *t, __u32 page)
{
	return bpf_map_lookup_elem(t->map, &page);
}

static __always_inline bool table_of(struct table *t, __u32 slot)
{
	t->map = bpf_map_lookup_elem(&observed, &slot);
	t->observer = bpf_map_lookup_elem(&observers, &slot);
	return t->map && t->observer;
}

/* Adds @n to the header's counter @name. */
#define TABLE_ADD(t, name, n)                                             \
	do {                                                              \
		struct profil_table *header_ = table_page(t, 0);          \
		if (header_)                                              \
			__sync_fetch_and_add(&header_->name, (__u64)(n)); \
	} while (0)

/* Counts one process that the attachment in @slot can no longer follow. Global, as insert(). */
__attribute__((noinline)) int table_lost_process(__u32 slot, bool secret)
{
	struct table t;

	if (!table_of(&t, slot))
		return 0;
	if (secret)
		TABLE_ADD(&t, secret, 1);
	else
		TABLE_ADD(&t, unfollowed, 1);
	return 0;
}

/* A 64-bit hash finalizer: bijective. */
static __always_inline __u64 mix(__u64 a)
{
	a ^= a >> 32;
	a *= 0x9fb21c651e98df25ull;
	a ^= a >> 28;
	a *= 0x9fb21c651e98df25ull;
	return a ^ a >> 29;
}

/* The pid of @task in the client's pid namespace; 0: @task is not in that namespace. */
static __always_inline __u32 task_number(const struct table *t, struct task_struct *task)
{
	const struct profil_observer *o = t->observer;

	return pid_number(BPF_CORE_READ(task, thread_pid), o->pid_ns_level, o->pid_ns);
}

#endif
