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

/*
 * Says whether an interrupt runs, not the thread: the CPU was idle, or in user mode, where a thread
 * does not wake up others. The kernel's own count of interrupts is a variable that not every kernel
 * lets programs read. Of an interrupt during a system call, the caller of that passes for the
 * waker.
 */
static __always_inline bool in_interrupt(struct task_struct *task)
{
	return !task->pid ||
	       (task->mm && !arch_in_syscall((struct arch_regs *)bpf_task_pt_regs(task)));
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
