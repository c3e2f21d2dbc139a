/* thread_end.bpf.h - charges the CPU time of a thread after its latest tick, when the thread ends
 *
 * On the tick a sample stands for the CPU time since the thread's previous one, so what a thread
 * runs after its last tick has no sample. That is half a tick for a thread that is alone on its
 * CPU, and less or more among threads that take turns, whose turns end at ticks. The end of a
 * thread is charged in two steps:
 *
 *	sched_process_exit	the thread itself runs: the time until now, so that it is counted
 *				before pthread_join() or wait() return elsewhere
 *	sched_process_free	the rest: releasing memory and files, by the final sum_exec_runtime
 *
 * Each is thinned like a sample. The first is counted where the thread's latest sample was
 * (last_place.bpf.h). The rest is time in the kernel: it is counted where in the kernel the latest
 * tick of the machine has met a thread that exits (exit_pc), below the thread's user pc. A profile
 * of the process's own has no places in the kernel, and counts it as the first step.
 *
 * A thread without a sample has no such place. Its time waits in the attachment's table until a
 * thread of the same name and cgroup ends with a sample, and is counted there: of many short
 * processes of one program, those that a tick has met stand for the others. For a profile of the
 * process's own it waits in the target. Threads that take turns with others in step with the tick
 * may never meet one: when UNSEEN_PERIODS are waiting, the next thread that exits counts them where
 * it ends. What is left at the end of the profile is reported as unseen_ns. A tick that meets such
 * a thread after its sched_process_exit stands for the time since then only (paid_ns).
 *
 * An exec ends an account as well, and begins another: the time until then is the former program's.
 * It is counted at the thread's latest sample or, without one, at that of the parent, of which the
 * thread was a copy: what a shell's children run before they are another program is the shell's.
 */
#ifndef PROFIL_BPF_THREAD_END_BPF_H
#define PROFIL_BPF_THREAD_END_BPF_H

#include "last_place.bpf.h"
#include "observe.bpf.h"
#include "sample.bpf.h"

/* --- time without a place --------------------------------------------------------------------- */

/* A hash of the name and the cgroup of @task. Not inlined, as thread_charge(). */
static __attribute__((noinline)) __u64 kin_of(struct task_struct *task)
{
	__u64 name[2] = { 0 };

	bpf_probe_read_kernel_str(name, sizeof(name), &task->comm);
	return mix(mix(name[0] ^ mix(name[1])) ^ BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id));
}

static __always_inline __u64 unseen_tag(__u64 kin)
{
	return kin >> PROFIL_UNSEEN_BITS | 1;
}

static __always_inline __u64 *unseen_cell(const struct table *t, __u64 kin)
{
	__u64 *cells = table_page(t, PROFIL_UNSEEN_PAGE);

	return cells ? &cells[kin % PROFIL_UNSEEN_CELLS] : NULL;
}

#define UNSEEN_TRIES 4

/*
 * Adds @ns, of a thread whose name and cgroup are @kin, to the time of target @index that waits for
 * a place. A cell of others is taken over: their time waits no longer. Global, as insert().
 */
__attribute__((noinline)) int unseen_add(__u32 index, __u64 kin, __u64 ns)
{
	struct profil_target *target = PLACE(&tables.target[index % PROFIL_MAX_TARGETS]);
	__u64 tag = unseen_tag(kin), *cell;
	struct table table, *t = &table;

	if (!(target->flags & PROFIL_TARGET_OBSERVE)) {
		__sync_fetch_and_add(&target->unseen_ns, ns);
		return 0;
	}
	if (!table_of(t, target->slot))
		return 0;
	/* Whether the time was in user mode is not known. */
	cell = target->flags & PROFIL_TARGET_USER_ONLY ? NULL : unseen_cell(t, kin);
	for (int i = 0; cell && i < UNSEEN_TRIES; i++) {
		__u64 old = *(volatile __u64 *)cell, sum = ns;
		bool same = old >> PROFIL_UNSEEN_BITS == tag;

		if (same)
			sum += old & PROFIL_UNSEEN_MOST;
		if (sum > PROFIL_UNSEEN_MOST)
			break;
		if (__sync_val_compare_and_swap(cell, old, tag << PROFIL_UNSEEN_BITS | sum) != old)
			continue;
		if (!same && old)
			TABLE_ADD(t, unseen_ns, old & PROFIL_UNSEEN_MOST);
		return 0;
	}
	TABLE_ADD(t, unseen_ns, ns);
	return 0;
}

/* Takes the time of @kin that waits for a place, if it is @least_ns or more. Global, as insert().
 */
__attribute__((noinline)) __u64 unseen_take(__u32 index, __u64 kin, __u64 least_ns)
{
	struct profil_target *target = PLACE(&tables.target[index % PROFIL_MAX_TARGETS]);
	struct table table, *t = &table;
	__u64 *cell, old;

	if (!(target->flags & PROFIL_TARGET_OBSERVE)) {
		old = *(volatile __u64 *)&target->unseen_ns;
		if (!old || old < least_ns)
			return 0;
		return __sync_lock_test_and_set(&target->unseen_ns, 0);
	}
	cell = table_of(t, target->slot) ? unseen_cell(t, kin) : NULL;
	if (!cell)
		return 0;
	old = *(volatile __u64 *)cell;
	if (old >> PROFIL_UNSEEN_BITS != unseen_tag(kin) || (old & PROFIL_UNSEEN_MOST) < least_ns ||
	    __sync_val_compare_and_swap(cell, old, 0) != old)
		return 0;
	return old & PROFIL_UNSEEN_MOST;
}

/* --- threads with a tick ---------------------------------------------------------------------- */

/*
 * Charges @rest_ns of a thread that ends to the target of @last, whose counters are those of the
 * thread's latest sample. Global, as insert().
 */
__attribute__((noinline)) int last_charge(const struct profil_last *last, __u64 rest_ns, __u64 kin)
{
	struct profil_target *target;
	__u64 n;

	if (!last || !last_is_live(last) || last->state == LAST_DROPPED)
		return 0;
	target = PLACE(&tables.target[last->target % PROFIL_MAX_TARGETS]);
	if (target->flags & PROFIL_TARGET_CLOSED)
		return 0;
	if (last->state == LAST_NONE)
		return unseen_add(last->target, kin, rest_ns);
	n = thin(&target->elapsed_ns, target->period_ns,
		 rest_ns + unseen_take(last->target, kin, 0));
	if (!n)
		return 0;
	if (target->flags & PROFIL_TARGET_OBSERVE) {
		kept_count(target->slot, last->key[0], last->key[1],
			   kept_node(target->slot, last->node), n);
		__sync_fetch_and_add(&target->total, n);
	} else if (!(last->key[1] & PROFIL_ENTRY_UNBOUND)) {
		hit(last->key[1], last->key[0], (__u32)n);
	}
	return 0;
}

/*
 * Charges what @task, which ends, has run until @ran_ns and no tick has charged. Not inlined, so
 * that its stack is not part of the callers'.
 */
static __attribute__((noinline)) void thread_charge(struct task_struct *task,
						    struct profil_thread *thread, __u64 ran_ns)
{
	__u64 rest_ns = rest_settle(thread, ran_ns), kin;

	if (!rest_ns)
		return;
	kin = kin_of(task);
	for (int i = 0; i < PROFIL_LASTS; i++) {
		struct profil_last last = thread->last[i];

		if (last.epoch)
			last_charge(&last, rest_ns, kin);
	}
}

/* --- threads without a tick ------------------------------------------------------------------- */

/*
 * Adds CPU time, @ns, of a thread without a tick that began at @born_ns, to the target of @entry (a
 * process's, or just the target's number), whose attachment has scope @scope and observes all
 * processes of that. Global, as image_number().
 */
__attribute__((noinline)) int unseen_book(__u64 entry, __u64 ns, __u64 born_ns, __u64 kin,
					  __u32 scope)
{
	const struct profil_target *target = target_of(entry);
	struct table t;

	if (!(target->flags & PROFIL_TARGET_TICK) || target->flags & PROFIL_TARGET_CLOSED ||
	    born_ns < target->started_ns)
		return 0;
	if (!(target->flags & PROFIL_TARGET_OBSERVE)) {
		if (entry & PROFIL_ENTRY_UNBOUND)
			return 0;
	} else if (!table_of(&t, target->slot) || t.observer->scope != scope ||
		   (scope != PROFIL_SCOPE_PROCESSES && !scope_is_all(target->slot))) {
		return 0;
	}
	return unseen_add(profil_entry_target(entry), kin, ns);
}

/*
 * The entries of observed processes stay in the process table until the process is freed. Wide
 * scopes that do not select all have claimed the thread at its exit: unseen_exits(). Not
 * inlined, as thread_charge().
 */
static __attribute__((noinline)) void unseen_time(struct task_struct *task, __u64 kin, __u64 ns)
{
	__u32 tgid = tgid_of(task), end = buckets();
	__u64 born_ns = task->start_boottime;

	for (__u32 which = 0; which < 2 && which < end; which++) {
		const struct profil_bucket *bucket = bucket_of(tgid, which);

		for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
			__u64 entry = read_entry(bucket, i);

			if (entry_is(entry, tgid))
				unseen_book(entry, ns, born_ns, kin, PROFIL_SCOPE_PROCESSES);
		}
	}
	for (__u32 i = 0; i < PROFIL_MAX_WIDE && i < *(volatile __u32 *)&tables.wide.n; i++)
		unseen_book(wide_index(i), ns, born_ns, kin, PROFIL_SCOPE_MACHINE);
}

#define UNSEEN_PERIODS 8

/*
 * Counts the time of @kin that waits for a place of target @index, if it is UNSEEN_PERIODS or more,
 * at the user's pc of the running thread, which exits. @entry: the process's, if the profile is its
 * own. Returns 1 + how many samples are to be counted at their stack as well; 0: no stack. Global,
 * as insert().
 */
__attribute__((noinline)) int unseen_settle(__u32 index, __u64 entry, __u64 kin)
{
	struct profil_target *target = PLACE(&tables.target[index % PROFIL_MAX_TARGETS]);
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u64 pc = arch_pc((struct arch_regs *)bpf_task_pt_regs(task)), n;
	__u32 refused = PROFIL_TARGET_CLOSED | PROFIL_TARGET_USER_ONLY;
	int counted;

	if ((target->flags & (PROFIL_TARGET_CLOCKS | refused)) != PROFIL_TARGET_TICK || !task->mm ||
	    (!(target->flags & PROFIL_TARGET_OBSERVE) && entry & PROFIL_ENTRY_UNBOUND))
		return 0;
	n = unseen_take(index, kin, (__u64)UNSEEN_PERIODS * target->period_ns);
	n = n ? thin(&target->elapsed_ns, target->period_ns, n) : 0;
	if (!n)
		return 0;
	if (!(target->flags & PROFIL_TARGET_OBSERVE)) {
		hit(entry, pc, (__u32)n);
		return 0;
	}
	if (!counts_places)
		return 0;
	counted = place_count(target->slot, pc, 0, (__u32)n);
	if (!counted)
		return 0;
	if (counted == COUNTED_LATER)
		leaf_count(target->slot);
	__sync_fetch_and_add(&target->total, n);
	return target->flags & PROFIL_TARGET_STACKS ? (int)(1 + n) : 0;
}

/* Not called by unseen_settle(): both together would exceed the BPF stack. Global, as insert(). */
__attribute__((noinline)) int unseen_stack(__u32 index, __u32 n)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	return stack_count(tables.target[index % PROFIL_MAX_TARGETS].slot,
			   arch_pc((struct arch_regs *)bpf_task_pt_regs(task)), 0, n, false);
}

static __always_inline void unseen_settle_one(__u32 index, __u64 entry, __u64 kin)
{
	__u32 stacks = (__u32)unseen_settle(index, entry, kin);

	if (counts_places && stacks)
		unseen_stack(index, stacks - 1);
}

/*
 * Says whether the wide attachment @i selects the running thread, which exits: 1, or 2 if it does
 * by a property that the thread has no longer when it is freed. Global, as image_number().
 */
__attribute__((noinline)) int exit_scope(__u32 i)
{
	const struct profil_target *target = wide_target(i);

	if ((target->flags & (PROFIL_TARGET_CLOCKS | PROFIL_TARGET_CLOSED)) != PROFIL_TARGET_TICK)
		return 0;
	if (scope_is_all(target->slot))
		return 1;
	return scope_of(target->slot) == SCOPE_HOLDS ? 2 : 0;
}

/*
 * The running thread, which exits, has had no tick for the wide attachment @i, which selects it.
 * Global, as insert().
 */
__attribute__((noinline)) int scope_claim(__u32 i)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct profil_thread *thread;

	if (task->start_boottime < wide_target(i)->started_ns)
		return 0;
	thread = thread_of(task);
	if (thread)
		last_of(thread, wide_index(i), true);
	return 0;
}

/*
 * The running thread exits and has had no tick. Counts what waits for a place and is of its kind.
 * Global, as insert().
 */
__attribute__((noinline)) int unseen_exits(void)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u32 tgid = tgid_of(task), end = buckets();
	__u64 kin = kin_of(task);

	for (__u32 which = 0; which < 2 && which < end; which++) {
		const struct profil_bucket *bucket = bucket_of(tgid, which);

		for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
			__u64 entry = read_entry(bucket, i);

			if (entry_is(entry, tgid))
				unseen_settle_one(profil_entry_target(entry), entry, kin);
		}
	}
	for (__u32 i = 0;
	     counts_places && i < PROFIL_MAX_WIDE && i < *(volatile __u32 *)&tables.wide.n; i++) {
		int scope = exit_scope(i);

		if (scope)
			unseen_settle_one(wide_index(i), 0, kin);
		if (scope > 1)
			scope_claim(i);
	}
	return 0;
}

/* --- the exit --------------------------------------------------------------------------------- */

/* Where in the kernel the latest tick has met a thread that exits; 0: nowhere yet. */
static volatile __u64 exit_pc;

static __always_inline void exit_notice(const struct task_struct *task, __u64 kernel_pc)
{
	if (task->flags & PF_EXITING && kernel_pc)
		exit_pc = kernel_pc;
}

/* The user's pc of the running thread, which exits; 0: it has no memory any more. */
static __always_inline __u64 exit_user_pc(void)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	return task->mm ? arch_pc((struct arch_regs *)bpf_task_pt_regs(task)) : 0;
}

/*
 * What the running thread runs from here on is time in the kernel: sets exit_pc as its latest place
 * for target @index. Returns 1: the stack as well. Global, as insert().
 */
__attribute__((noinline)) int exit_place(__u32 index)
{
	struct profil_target *target = PLACE(&tables.target[index % PROFIL_MAX_TARGETS]);
	int counted;

	if (!(target->flags & PROFIL_TARGET_OBSERVE) || !exit_pc)
		return 0;
	if (target->flags & PROFIL_TARGET_USER_ONLY) {
		last_set(index, 0, 0, 0, LAST_DROPPED);
		return 0;
	}
	counted = place_count(target->slot, exit_user_pc(), exit_pc, 0);
	if (counted == COUNTED_LATER)
		leaf_count(target->slot);
	if (target->flags & PROFIL_TARGET_STACKS)
		return counted != COUNTED_NOT;
	if (counted)
		last_keep(index, 0);
	return 0;
}

/* Not called by exit_place(): both together would exceed the BPF stack. Global, as insert(). */
__attribute__((noinline)) int exit_stack(__u32 index)
{
	const struct profil_target *target = PLACE(&tables.target[index % PROFIL_MAX_TARGETS]);

	return last_keep(index,
			 (__u32)stack_count(target->slot, exit_user_pc(), exit_pc, 0, false));
}

static __always_inline void exit_places(const struct profil_thread *thread)
{
	for (int i = 0; i < PROFIL_LASTS; i++) {
		const struct profil_last *last = &thread->last[i];
		__u32 index = last->target;

		if (last_is_live(last) && last->state == LAST_COUNTED && exit_place(index))
			exit_stack(index);
	}
}

/* --- the exec --------------------------------------------------------------------------------- */

/* Counts the time of @kin that waits for a place at the latest samples of @parent. */
static __always_inline void parent_charge(struct task_struct *parent, __u64 kin)
{
	const struct profil_thread *thread = bpf_task_storage_get(&threads, parent, NULL, 0);

	for (int i = 0; thread && i < PROFIL_LASTS; i++) {
		struct profil_last last = thread->last[i];

		if (last.epoch && last.state == LAST_COUNTED)
			last_charge(&last, 0, kin);
	}
}

/* @task, which runs and has run for @ran_ns, has executed another program. */
static __always_inline void thread_execs(struct task_struct *task, __u64 ran_ns)
{
	struct profil_thread *thread = thread_of(task);
	struct task_struct *parent = task->real_parent;

	if (!thread || ran_ns <= thread->paid_ns)
		return;
	if (thread->tick_epoch) {
		thread_charge(task, thread, ran_ns);
	} else if (parent) {
		unseen_time(task, kin_of(parent), ran_ns - thread->paid_ns);
		parent_charge(parent, kin_of(parent));
	}
	thread->paid_ns = thread->ticked_ns = ran_ns;
	thread->tick_epoch = 0;
	for (int i = 0; i < PROFIL_LASTS; i++)
		thread->last[i].epoch = 0;
}

/* --- the end ---------------------------------------------------------------------------------- */

static __always_inline bool is_ticked(struct task_struct *task)
{
	const struct profil_thread *thread = bpf_task_storage_get(&threads, task, NULL, 0);

	return thread && thread->tick_epoch;
}

/*
 * Charges what the running thread, which is about to end, has run: @ran_ns. One without a tick has
 * been in unseen_exits() before: both together would exceed the BPF stack. Not inlined, as
 * thread_charge().
 */
static __attribute__((noinline)) void exit_charge(struct task_struct *task, __u64 ran_ns)
{
	struct profil_thread *thread = thread_of(task);

	if (!thread)
		return;
	if (!thread->tick_epoch && ran_ns > thread->paid_ns)
		unseen_time(task, kin_of(task), ran_ns - thread->paid_ns);
	thread_charge(task, thread, ran_ns);
	if (!thread->tick_epoch)
		thread->paid_ns = ran_ns;
	else if (counts_places)
		exit_places(thread);
}

/* The running thread, @task, which has run for @ran_ns, is about to end. */
static __always_inline void thread_exits(struct task_struct *task, __u64 ran_ns)
{
	if (!is_ticked(task))
		unseen_exits();
	exit_charge(task, ran_ns);
}

/* @task has ended, and its sum_exec_runtime is final. */
static __always_inline void thread_is_freed(struct task_struct *task)
{
	struct profil_thread *thread = bpf_task_storage_get(&threads, task, NULL, 0);
	__u64 ran_ns = task->se.sum_exec_runtime, paid_ns = thread ? thread->paid_ns : 0;

	if ((!thread || !thread->tick_epoch) && ran_ns > paid_ns)
		unseen_time(task, kin_of(task), ran_ns - paid_ns);
	if (thread)
		thread_charge(task, thread, ran_ns);
}

#endif
