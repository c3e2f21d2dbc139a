/* last_place.bpf.h - where a thread's latest sample on the tick was counted, for each target */
#ifndef PROFIL_BPF_LAST_PLACE_BPF_H
#define PROFIL_BPF_LAST_PLACE_BPF_H

#include <stdbool.h>

#include "call_tree.bpf.h"
#include "cpu_time.bpf.h"

/*
 * The end of a thread is charged where its latest sample was counted (thread_end.bpf.h). By then
 * its memory may be gone, so the thread's storage keeps the keys of that sample, not its pc. The
 * first tick for a target claims an element of struct profil_thread. The element is free again when
 * the target has ended, which its epoch shows.
 *
 * A target with a longer period than the tick's counts not every tick. The place of a thread's
 * first tick is found even if it counts as no sample, so that a short thread has one at its end.
 */
enum last_state {
	LAST_NONE,    /* no sample has been counted yet */
	LAST_COUNTED, /* at the keys */
	LAST_DROPPED, /* the target does not count such samples: user_only */
};

static __always_inline bool last_is_live(const struct profil_last *last)
{
	return last->epoch && tables.target[last->target % PROFIL_MAX_TARGETS].epoch == last->epoch;
}

/* The element of @thread for target @index; without one, a free one if @claim. NULL: none. */
static __always_inline struct profil_last *last_of(struct profil_thread *thread, __u32 index,
						   bool claim)
{
	__u64 epoch = tables.target[index % PROFIL_MAX_TARGETS].epoch;
	struct profil_last *free = NULL;

	for (int i = 0; i < PROFIL_LASTS; i++) {
		struct profil_last *last = &thread->last[i];

		if (last->epoch == epoch && last->target == (__u16)index)
			return last;
		if (claim && !free && !last_is_live(last))
			free = last;
	}
	if (!free)
		return NULL;
	*free = (struct profil_last){ .epoch = epoch, .target = (__u16)index };
	return free;
}

/* Sets what is kept of the running thread's sample for target @index. Global, as insert(). */
__attribute__((noinline)) int last_set(__u32 index, __u64 key, __u64 key2, __u32 node, __u32 state)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct profil_thread *thread = bpf_task_storage_get(&threads, task, NULL, 0);
	struct profil_last *last = thread ? last_of(thread, index, true) : NULL;

	if (!last)
		return 0;
	last->key[0] = key;
	last->key[1] = key2;
	last->node = node;
	last->state = (__u16)state;
	return 0;
}

/* Keeps the places of the sample that this CPU has just counted for @index. Global, as insert(). */
__attribute__((noinline)) int last_keep(__u32 index, __u32 node)
{
	__u32 zero = 0;
	const struct cpu_ranges *cpu = bpf_map_lookup_elem(&cpu_ranges, &zero);

	/* An NMI may have counted a sample of its own meanwhile. */
	if (cpu && cpu->counted.slot == tables.target[index % PROFIL_MAX_TARGETS].slot)
		last_set(index, cpu->counted.key[0], cpu->counted.key[1], node, LAST_COUNTED);
	return 0;
}

static __always_inline void last_counted(__u32 flags, __u32 index, __u32 node)
{
	if (flags == PROFIL_TARGET_TICK)
		last_keep(index, node);
}

static __always_inline void last_dropped(__u32 flags, __u32 index)
{
	if (flags == PROFIL_TARGET_TICK)
		last_set(index, 0, 0, 0, LAST_DROPPED);
}

/* The first tick of the running thread for target @index: see first_time(). Global, as insert(). */
__attribute__((noinline)) __u64 tick_begin(__u32 index)
{
	const struct profil_target *target = PLACE(&tables.target[index % PROFIL_MAX_TARGETS]);
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct profil_thread *thread = bpf_task_storage_get(&threads, task, NULL, 0);
	__u64 ran_ns = task->se.sum_exec_runtime;

	if (!thread) /* out of memory: each tick is the first one */
		return tick_ns;
	last_of(thread, index, true);
	/* What was paid for is an estimate, which may have been too high. */
	ran_ns = ran_ns > thread->paid_ns ? ran_ns - thread->paid_ns : 0;
	return first_time(ran_ns, task->start_boottime, target->started_ns,
			  bpf_ktime_get_boot_ns());
}

/* True for the first tick of the running thread for @target. */
static __always_inline bool is_first(const struct cpu_time *t, const struct profil_target *target)
{
	return !t->periods && t->since < target->epoch;
}

/* The CPU time of a sample @t that is the first one of its thread for target @index. */
static __always_inline __u64 first_of(const struct cpu_time *t, const struct profil_target *target,
				      __u32 index)
{
	return is_first(t, target) ? tick_begin(index) : t->clock_ns;
}

#endif
