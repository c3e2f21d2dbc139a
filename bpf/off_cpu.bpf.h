/* off_cpu.bpf.h - the time that threads have no CPU, counted at the stack on which they lost it
 *
 * An attachment to off-CPU time counts in a table of places and calling contexts, as others do. A
 * thread that gives up its CPU to wait, for input, a lock, a page from a disk, is entered as a
 * sleeper in the attachment's table: its stack's node, its place, and the time. When the scheduler
 * picks the thread again, the time in between is counted there, thinned to one sample for each
 * period of sleep.
 *
 * An attachment by states (PROFIL_WAITS_STATES) has samples of CPU time as well. It distinguishes
 *
 *	asleep		from the switch to the wake-up
 *	runnable	from there, or from the preemption, to the next switch
 *
 * Both are counted at notes below the stack's node. Samples of CPU time have no note. A thread that
 * is new waits for a CPU from its start on; one that is older than the attachment has waited since
 * the attachment began. Both are counted without a stack. Thus the states add up to the time that
 * the threads exist. Threads that have not had a CPU at all since then are the client's to find.
 * Other attachments (PROFIL_WAITS_SLEEPS) count from the switch that begins a sleep to the one that
 * ends it, and no preemption.
 *
 * The scheduler charges a thread from its wake-up on, if the CPU was idle: up to the switch that is
 * 10 us, which would count twice. A thread cannot have slept for longer than the wall clock minus
 * its CPU time, so each new sleep compares the sum of the one before and the CPU time since then
 * with the wall clock. What was too much is taken from the next sleep: where states are
 * distinguished, from the time in which the thread was runnable, for there it counts twice.
 *
 * Sleepers are elements of two lines of the table that the thread's id selects. An element is
 * claimed by compare-and-swap of the id and released when the thread gets a CPU, or where that
 * switch was not traced, when it loses it again (sleep_end_unseen()). The CPU that
 * switches from or to a thread writes its element, and in between the CPU on which it is woken up:
 * the scheduler does that after the first switch is complete, and holds the lock without which the
 * second one does not begin. Threads that still have no CPU when the attachment ends are left in
 * the table, and the client counts their time. A sleep without room for its element is counted in
 * sleepers_full.
 *
 * What a thread waits for is noted at its element (wait.bpf.h), and what woke it up if an
 *attachment asks for it (waker.bpf.h). Both are counted at notes below that of the state.
 *
 * The programs run at each switch and wake-up of the machine, while there is such an attachment.
 */
#ifndef PROFIL_BPF_OFF_CPU_BPF_H
#define PROFIL_BPF_OFF_CPU_BPF_H

#include <stdbool.h>

#include "observe.bpf.h"
#include "sample.bpf.h"
#include "switch_frame.bpf.h"
#include "wait.bpf.h"
#include "waker.bpf.h"

/*
 * Enters the running thread as a sleeper, in @state: at the user's frames from @user_pc outwards,
 * and those of the kernel if the attachment wants them. Global, as image_number().
 */
__attribute__((noinline)) int sleeper_enter(__u32 slot, __u64 user_pc, __u32 state)
{
	const struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct table table, *t = &table;
	__u64 kernel_pc = 0, group, now_ns;
	struct profil_sleeper *s;
	struct unwind *u;
	__u32 zero = 0;

	u = bpf_map_lookup_elem(&unwinds, &zero);
	if (!u || !table_of(t, slot))
		return 0;
	s = u->busy ? NULL : sleeper_of(t, (__u32)task->pid, true);
	if (!s) {
		TABLE_ADD(t, sleepers_full, 1);
		return 0;
	}
	*(volatile __u32 *)&u->busy = 1;
	if (t->observer->flags & PROFIL_OBSERVER_KERNEL_STACKS)
		kernel_pc = sleep_pc();
	group = t->observer->group_by ? profil_place((__u32)group_number(slot), 0, 0) : 0;
	stack_count(slot, user_pc, kernel_pc, 0, true);
	s->node = u->node;
	s->key[0] = u->leaf_place ? u->leaf_place | group : 0;
	s->wait = state == PROFIL_STATE_ASLEEP && t->observer->stack_mode ? wait_note(slot) : 0;
	s->key[1] = kernel_pc && u->depth ? u->place[0] | group | PROFIL_PLACE_FOLDED : 0;
	now_ns = bpf_ktime_get_ns();
	s->woken_ns = state == PROFIL_STATE_RUNNABLE ? now_ns : 0;
	*(volatile __u64 *)&s->since_ns = now_ns;
	*(volatile __u32 *)&u->busy = 0;
	return 0;
}

/* A sleep of @thread, which has run for @ran_ns, begins at @now_ns. */
static __always_inline void sleep_opens(struct profil_thread *thread, __u64 ran_ns, __u64 now_ns)
{
	__u64 used_ns = thread->slept_ns + ran_ns - thread->out_ran_ns;

	if (thread->out_ns && used_ns > now_ns - thread->out_ns)
		thread->overlap_ns += used_ns - (now_ns - thread->out_ns);
	thread->out_ns = now_ns;
	thread->out_ran_ns = ran_ns;
	thread->slept_ns = 0;
}

/* The running thread loses its CPU, and is then in @state. Global, as insert(). */
__attribute__((noinline)) int sleep_account(__u32 state)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct profil_thread *thread = thread_of(task);

	if (!thread)
		return 0;
	thread->out_epoch = tables.clock.epoch;
	thread->lost_ran_ns = task->se.sum_exec_runtime;
	if (state == PROFIL_STATE_ASLEEP)
		sleep_opens(thread, task->se.sum_exec_runtime, bpf_ktime_get_ns());
	return 0;
}

/* The sleep of @thread ends at @now_ns. Returns how much of it is not counted. */
static __always_inline __u64 sleep_closes(struct profil_thread *thread, __u64 now_ns)
{
	__u64 taken_ns;

	if (!thread->out_ns || thread->slept_ns)
		return 0;
	thread->slept_ns = now_ns - thread->out_ns;
	taken_ns = thread->overlap_ns < thread->slept_ns ? thread->overlap_ns : thread->slept_ns;
	thread->overlap_ns -= taken_ns;
	return taken_ns;
}

/*
 * The thread that gets this CPU. These are no arguments, because all functions of a call chain
 * share 512 bytes of stack.
 */
struct switched_in {
	__u64 taken_ns;	 /* the part of its sleep that is not counted */
	__u64 out_epoch; /* as in struct profil_thread */
	__u64 born_ns;	 /* CLOCK_BOOTTIME; 0: not to be counted without its element */
	__u64 ran_ns;
	__u64 wait; /* a note: what it has slept for */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct switched_in);
} switched_in SEC(".maps");

/* @task runs next on this CPU. */
static __always_inline void sleep_settle(struct task_struct *task)
{
	struct profil_thread *thread = bpf_task_storage_get(&threads, task, NULL, 0);
	__u32 zero = 0;
	struct switched_in *in = bpf_map_lookup_elem(&switched_in, &zero);

	if (!in)
		return;
	if (thread)
		thread->lost_ran_ns = 0;
	in->taken_ns = thread ? sleep_closes(thread, bpf_ktime_get_ns()) : 0;
	in->out_epoch = thread ? thread->out_epoch : 0;
	in->born_ns = task->flags & PF_EXITING ? 0 : task->start_boottime;
	in->ran_ns = task->se.sum_exec_runtime;
	in->wait = 0;
}

/* The parts of a wait that began at @since_ns and ends at @now_ns, of which @taken_ns count not. */
static __always_inline void wait_divide(__u64 *asleep_ns, __u64 *runnable_ns, __u64 since_ns,
					__u64 woken_ns, __u64 now_ns, __u64 taken_ns)
{
	if (!woken_ns || woken_ns > now_ns)
		woken_ns = now_ns;
	if (woken_ns < since_ns)
		woken_ns = since_ns;
	*asleep_ns = woken_ns - since_ns;
	*runnable_ns = now_ns - woken_ns;
	if (taken_ns > *runnable_ns) {
		taken_ns -= *runnable_ns;
		*asleep_ns -= taken_ns < *asleep_ns ? taken_ns : *asleep_ns;
		taken_ns = *runnable_ns;
	}
	*runnable_ns -= taken_ns;
}

/* Where a wait is counted: a node of 28 bits, the state (0: none) and the waker of notes below it.
 */
#define WAITED_NODE ((1u << 28) - 1)
#define WAITED_WAKER 28
#define WAITED_STATE 56

static __always_inline __u64 waited_at(__u32 node, __u32 state, __u32 waker)
{
	return (__u64)state << WAITED_STATE | (__u64)(waker & WAITED_NODE) << WAITED_WAKER |
	       (node & WAITED_NODE);
}

/* The node of @note below @node; without room @node itself. */
static __always_inline __u32 note_below(__u32 slot, __u32 node, __u64 note)
{
	return (__u32)node_number(slot, node, note) ?: node;
}

/* What the thread that gets this CPU has slept for: a note; 0: not known. Global, as insert(). */
__attribute__((noinline)) __u64 slept_for(void)
{
	__u32 zero = 0;
	const struct switched_in *in = bpf_map_lookup_elem(&switched_in, &zero);

	return in ? in->wait : 0;
}

/*
 * Counts @ns that a thread has waited for target @index, at its places @key and @folded, and at the
 * node and notes @at. Notes without a stack above them would be a whole stack without frames: a wait
 * without a walk (walk_budget.h) is in stack_lost. Global, as insert().
 */
__attribute__((noinline)) int wait_count(__u32 index, __u64 key, __u64 folded, __u64 at, __u64 ns)
{
	struct profil_target *target = PLACE(&tables.target[index % PROFIL_MAX_TARGETS]);
	__u64 n = thin(&target->elapsed_ns, target->period_ns, ns);
	__u32 node = (__u32)at & WAITED_NODE, waker = (__u32)(at >> WAITED_WAKER) & WAITED_NODE;
	__u32 state = (__u32)(at >> WAITED_STATE);
	__u64 wait;

	if (!n)
		return 0;
	if (state)
		node = note_below(target->slot, node ?: PROFIL_STACK_UNREADABLE,
				  profil_place(PROFIL_NOTE_STATE, 0, state));
	wait = state == PROFIL_STATE_RUNNABLE ? 0 : slept_for();
	if (node && wait)
		node = note_below(target->slot, node, wait);
	if (node && waker)
		node = note_below(target->slot, node, profil_place(PROFIL_NOTE_WAKER, 0, waker));
	kept_count(target->slot, key, folded, node, n);
	__sync_fetch_and_add(&target->total, n);
	return 0;
}

/*
 * The thread that gets this CPU has no element of target @index. If that is because it did not run
 * since the target counts, its wait is counted without a stack. Global, as insert().
 */
__attribute__((noinline)) int unseen_wait_count(__u32 index)
{
	const struct profil_target *target = PLACE(&tables.target[index % PROFIL_MAX_TARGETS]);
	__u64 since_ns = target->waits_since_ns, now_ns = bpf_ktime_get_boot_ns();
	__u32 zero = 0, state = PROFIL_STATE_ASLEEP;
	struct switched_in *in = bpf_map_lookup_elem(&switched_in, &zero);

	if (!in || !in->born_ns || in->out_epoch >= target->epoch)
		return 0;
	if (!in->ran_ns)
		state = PROFIL_STATE_RUNNABLE;
	else if (in->born_ns >= since_ns)
		return 0; /* it has run, and found no room */
	if (in->born_ns > since_ns)
		since_ns = in->born_ns;
	in->wait = 0;
	return now_ns > since_ns
		       ? wait_count(index, 0, 0, waited_at(0, state, 0), now_ns - since_ns)
		       : 0;
}

/*
 * Counts the wait of thread @tid, which gets a CPU, for target @index. @all: the target counts all
 * threads of the machine or the process. Global, as insert().
 */
__attribute__((noinline)) int sleeper_leave(__u32 index, __u32 tid, bool all)
{
	const struct profil_target *target = PLACE(&tables.target[index % PROFIL_MAX_TARGETS]);
	bool states = target->waits == PROFIL_WAITS_STATES;
	__u32 zero = 0, node, waker;
	struct switched_in *in = bpf_map_lookup_elem(&switched_in, &zero);
	__u64 since_ns, asleep_ns, runnable_ns, key, folded;
	struct table table, *t = &table;
	struct profil_sleeper *s;

	if (target->flags & PROFIL_TARGET_CLOSED || !in || !table_of(t, target->slot))
		return 0;
	s = sleeper_of(t, tid, false);
	if (!s)
		return states && all ? unseen_wait_count(index) : 0;
	since_ns = s->since_ns;
	node = s->node;
	key = s->key[0];
	folded = s->key[1];
	waker = s->waker;
	in->wait = s->wait;
	wait_divide(&asleep_ns, &runnable_ns, since_ns, states ? s->woken_ns : 0,
		    bpf_ktime_get_ns(), in->taken_ns);
	s->waker = PROFIL_WAKER_UNKNOWN;
	*(volatile __u64 *)&s->since_ns = 0;
	__sync_lock_test_and_set(&s->tid, 0);
	if (!since_ns)
		return 0;
	if (asleep_ns)
		wait_count(index, key, folded,
			   waited_at(node, states ? PROFIL_STATE_ASLEEP : 0, waker), asleep_ns);
	if (runnable_ns)
		wait_count(index, key, folded, waited_at(node, PROFIL_STATE_RUNNABLE, 0),
			   runnable_ns);
	return 0;
}

/* Thread @tid, which is woken up, is runnable from now on for target @index. Global, as insert().
 */
__attribute__((noinline)) int sleeper_wake(__u32 index, __u32 tid)
{
	const struct profil_target *target = PLACE(&tables.target[index % PROFIL_MAX_TARGETS]);
	struct table table, *t = &table;
	struct profil_sleeper *s = NULL;

	if (table_of(t, target->slot))
		s = sleeper_of(t, tid, false);
	if (s && s->since_ns && !s->woken_ns)
		s->woken_ns = bpf_ktime_get_ns();
	return 0;
}

/* The running thread loses its CPU, for the target of @entry. Global, as insert(). */
__attribute__((noinline)) int sleep_begin(const struct sample *s, __u64 entry)
{
	const struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct profil_target *target = target_of(entry);
	__u64 pc;

	if (!s || is_missed(task, entry, true))
		return 0;
	pc = profil_pc_of(s, task, entry, target);
	sleeper_enter(target->slot, pc == s->user_pc ? pc : 0, s->flags);
	return 0;
}

/* The same for the wide attachment @i. Global, as observe_wide_one(). */
__attribute__((noinline)) int sleep_begin_wide(const struct sample *s, __u32 i)
{
	const struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct profil_target *target = wide_target(i);

	if (s && (scope_is_all(target->slot) || scope_of(target->slot) == SCOPE_HOLDS))
		sleeper_enter(target->slot, wide_user_pc(s, task, target), s->flags);
	return 0;
}

/* What happens to a thread. */
enum wait_step {
	WAIT_BEGINS, /* it loses its CPU */
	WAIT_WAKES,
	WAIT_IS_WOKEN, /* the same, where the running thread or an interrupt does it */
	WAIT_ENDS,     /* it gets a CPU */
};

/* Says whether @target has to do with @step of a thread, which is then in @state. */
static __always_inline bool counts_wait(const struct profil_target *target, enum wait_step step,
					__u32 state)
{
	__u32 waits = target->waits;

	if (!waits || target->flags & PROFIL_TARGET_CLOSED)
		return false;
	if (waits == PROFIL_WAITS_STATES)
		return true;
	return step == WAIT_ENDS || (step == WAIT_BEGINS && state == PROFIL_STATE_ASLEEP);
}

/*
 * Does @step of @task for all its targets; @s: at its beginning the sample, with the state in
 * flags. Returns whether there are any. A thread's real uid does not change while it waits, so that
 * the wide attachments of other users cost it a comparison.
 */
static __always_inline bool wait_all(const struct sample *s, struct task_struct *task,
				     enum wait_step step)
{
	__u32 end = buckets(), tgid = tgid_of(task), tid = (__u32)task->pid, uid;
	bool any = false;

	for (__u32 which = 0; which < 2 && which < end; which++) {
		const struct profil_bucket *bucket = bucket_of(tgid, which);

		for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
			__u64 entry = read_entry(bucket, i);

			if (!entry_is(entry, tgid) ||
			    !counts_wait(target_of(entry), step, s ? s->flags : 0))
				continue;
			any = true;
			if (step == WAIT_BEGINS)
				sleep_begin(s, entry);
			else if (step == WAIT_WAKES)
				sleeper_wake(profil_entry_target(entry), tid);
			else if (step == WAIT_IS_WOKEN)
				waker_note(profil_entry_target(entry), tid);
			else
				sleeper_leave(profil_entry_target(entry), tid, true);
		}
	}
	if (!*(volatile __u32 *)&tables.wide.n)
		return any;
	uid = BPF_CORE_READ(cred_of(task), uid.val);
	for (__u32 i = 0; i < PROFIL_MAX_WIDE && i < *(volatile __u32 *)&tables.wide.n; i++) {
		if (!profil_wide_is_for(tables.wide.of[i], uid) ||
		    !counts_wait(wide_target(i), step, s ? s->flags : 0))
			continue;
		any = true;
		if (step == WAIT_BEGINS)
			sleep_begin_wide(s, i);
		else if (step == WAIT_WAKES)
			sleeper_wake(wide_index(i), tid);
		else if (step == WAIT_IS_WOKEN)
			waker_note(wide_index(i), tid);
		else
			sleeper_leave(wide_index(i), tid, scope_is_all(wide_target(i)->slot));
	}
	return any;
}

/*
 * Counts the wait of the running @task if it got its CPU in a switch that was not traced: kernels have
 * been met that leave out 1 of 100. The wait has lasted since it lost the CPU, without what it has run
 * since. Not inlined, for its stack.
 */
static __attribute__((noinline)) int sleep_end_unseen(struct task_struct *task)
{
	struct profil_thread *thread = bpf_task_storage_get(&threads, task, NULL, 0);
	__u32 zero = 0;
	struct switched_in *in = bpf_map_lookup_elem(&switched_in, &zero);

	if (!in || !thread || !thread->lost_ran_ns)
		return 0;
	in->taken_ns = task->se.sum_exec_runtime - thread->lost_ran_ns;
	in->out_epoch = thread->out_epoch;
	in->born_ns = 0;
	in->wait = 0;
	wait_all(NULL, task, WAIT_ENDS);
	return 0;
}

#endif
