/* waker.bpf.h - finds the sleepers of a table, and notes what wakes them up */
#ifndef PROFIL_BPF_WAKER_BPF_H
#define PROFIL_BPF_WAKER_BPF_H

#include <stdbool.h>

#include "observe.bpf.h"

/* Random, with the highest bit set: clients do not learn ids of the initial pid namespace. */
const volatile __u32 sleeper_salt;

/* The element of thread @tid; without one, a free one if @claim, which it gets. NULL: none. */
static __always_inline struct profil_sleeper *sleeper_of(const struct table *t, __u32 tid,
							 bool claim)
{
	const struct profil_observer *o = t->observer;
	__u64 h;

	tid ^= sleeper_salt;
	h = mix(tid);

#pragma clang loop unroll(disable)
	for (int turn = 0; turn < 2; turn++, h >>= 32) {
		__u32 page = o->sleeper_page + ((__u32)h & o->sleeper_mask);
		struct profil_sleeper *s = table_page(t, page);

		s = s ? s + (h >> 24 & 0xff) % PROFIL_PAGE_SLEEPER_LINES * PROFIL_LINE_SLEEPERS
		      : NULL;
		for (int i = 0; s && i < PROFIL_LINE_SLEEPERS; i++) {
			__u32 seen = *(volatile __u32 *)&s[i].tid;

			if (!seen && claim)
				seen = __sync_val_compare_and_swap(&s[i].tid, 0, tid) ?: tid;
			if (seen == tid)
				return &s[i];
		}
	}
	return NULL;
}

/* --- what wakes up a thread ------------------------------------------------------------------- */

/* Distance of the kernel's count from the CPU's struct rq (x86-64); 0: unknown. */
const volatile __u64 preempt_count_offset;

#define COUNT_OF_INTERRUPTS 0xff0000u /* linux/preempt.h: hardware interrupts and NMIs */
#define COUNT_OF_SOFTIRQ 0x100u
#define COUNT_UNKNOWN (~0u)

/* The kernel's count of interrupts on the CPU of the running @task. */
static __always_inline __u32 interrupt_count(struct task_struct *task)
{
	const struct task_struct___counts *counts = (void *)task;
	__u32 count = COUNT_UNKNOWN;
	__u64 rq = 0;

	if (ARCH_COUNT_IN_TASK)
		return (__u32)counts->thread_info.preempt_count;
	if (preempt_count_offset && bpf_core_field_exists(struct sched_entity, cfs_rq) &&
	    bpf_core_field_exists(struct cfs_rq, rq))
		rq = (__u64)BPF_CORE_READ(task, se.cfs_rq, rq);
	if (rq && bpf_probe_read_kernel(&count, sizeof(count), (void *)(rq + preempt_count_offset)))
		return COUNT_UNKNOWN;
	return count;
}

/* The address of irq_exit_rcu(), which handles softirqs when an interrupt ends, likewise. */
SEC(".data") __u64 irq_exit;
#define IRQ_EXIT_BYTES 512

/*
 * Says whether the softirq that runs is an interrupt's, not of a system call that has just sent a
 * packet to its own machine. Global, as insert().
 */
__attribute__((noinline)) int softirq_is_of_interrupt(void)
{
	__u64 start = irq_exit;
	__u32 zero = 0, n;
	struct unwind *u = bpf_map_lookup_elem(&unwinds, &zero);
	long bytes;

	if (!u || u->busy)
		return false;
	bytes = bpf_get_task_stack(bpf_get_current_task_btf(), u->kernel, sizeof(u->kernel), 0);
	n = bytes > 0 ? (__u32)bytes / 8 : 0;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < n && i < KERNEL_STACK; i++) {
		if (start && u->kernel[i] - start < IRQ_EXIT_BYTES)
			return true;
	}
	return false;
}

/*
 * Says whether an interrupt runs, not the thread. Where the kernel's count is not known: of an
 * interrupt during a system call, the caller of that passes for the waker.
 */
static __always_inline bool in_interrupt(struct task_struct *task)
{
	__u32 count = interrupt_count(task);

	if (!task->pid)
		return true;
	if (count == COUNT_UNKNOWN)
		return task->mm && arch_syscall((struct arch_regs *)bpf_task_pt_regs(task)) < 0;
	return count & COUNT_OF_INTERRUPTS ||
	       (count & COUNT_OF_SOFTIRQ && softirq_is_of_interrupt());
}

/*
 * Notes that the running thread, or an interrupt of it, wakes up thread @tid, if that is a sleeper
 * of target @index: its stack's node, which counts nothing. A sleep whose element is not claimed
 * yet has no waker. Global, as insert().
 */
__attribute__((noinline)) int waker_note(__u32 index, __u32 tid)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u32 slot = tables.target[index % PROFIL_MAX_TARGETS].slot, zero = 0, waker;
	struct unwind *u = bpf_map_lookup_elem(&unwinds, &zero);
	struct table table, *t = &table;
	struct profil_sleeper *s;

	if (!u || !table_of(t, slot) || !(t->observer->flags & PROFIL_OBSERVER_WAKERS))
		return 0;
	s = sleeper_of(t, tid, false);
	if (!s || s->waker || s->woken_ns)
		return 0;
	if (in_interrupt(task)) {
		waker = PROFIL_WAKER_INTERRUPT;
	} else if (!task->mm) {
		waker = PROFIL_WAKER_KERNEL;
	} else if (t->observer->flags & PROFIL_OBSERVER_NARROW &&
		   (!may_trace(t->observer, task) || is_in_execve())) {
		waker = PROFIL_WAKER_HIDDEN;
	} else if (u->busy) {
		return 0;
	} else {
		*(volatile __u32 *)&u->busy = 1;
		stack_count(slot, arch_pc((struct arch_regs *)bpf_task_pt_regs(task)), 0, 0, true);
		waker = u->node >= PROFIL_STACK_ROOTS ? u->node : PROFIL_WAKER_UNKNOWN;
		*(volatile __u32 *)&u->busy = 0;
	}
	s->waker = waker;
	return 0;
}

#endif
