/* off_cpu.bpf.h - the time that threads sleep, counted at the stack on which they went to sleep
 *
 * An attachment to off-CPU time counts in a table of places and calling contexts, as others do. A
 * thread that gives up its CPU to wait, for input, a lock, a page from a disk, is entered as a
 * sleeper in the attachment's table: its stack's node, its place, and the time. When the scheduler
 * picks the thread again, the time in between is counted there, thinned to one sample for each
 * period of sleep. A thread that is preempted is not asleep, but the time that a sleeper waits for
 * a CPU after it was woken is included.
 *
 * The scheduler charges a thread from its wake-up on, if the CPU was idle: up to the switch that is
 * 10 us, which would count twice. A thread cannot have slept for longer than the wall clock minus
 * its CPU time, so each new sleep compares the sum of the one before and the CPU time since then
 * with the wall clock. What was too much is taken from the next sleep.
 *
 * Sleepers are elements of two lines of the table that the thread's id selects. An element is
 * claimed by compare-and-swap of the id and released when the thread wakes up; only the CPU that
 * switches from or to a thread touches its element. Threads that still sleep when the attachment
 * ends are left in the table, and the client counts their time. A sleep without room for its
 * element is counted in sleepers_full.
 *
 * The program runs at each switch of the machine, while there is such an attachment.
 */
#ifndef PROFIL_BPF_OFF_CPU_BPF_H
#define PROFIL_BPF_OFF_CPU_BPF_H

#include <stdbool.h>

#include "observe.bpf.h"
#include "sample.bpf.h"

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

/* Frames of the tracepoint and this program, at most. */
#define SWITCH_FRAMES 16

/* The return address in the function of the tracepoint that calls this program; 0: not seen yet. */
static __u64 switch_pc;

/* With a second program at the tracepoint this function calls them all. */
extern const void __traceiter_sched_switch __ksym __weak;
#define TRACEITER_BYTES 512

static __always_inline bool is_iterator(__u64 pc)
{
	__u64 start = (__u64)&__traceiter_sched_switch;

	return start && pc - start < TRACEITER_BYTES;
}

/* Compares the beginning of @name; the verifier wants a constant length. */
#define BEGINS(name, with) (!bpf_strncmp(name, sizeof(with) - 1, with))

/* True if @pc is in a function of the tracepoint, by name, as is_tick(). Global, as it. */
__attribute__((noinline)) int is_tracepoint(__u64 pc)
{
	char name[16] = { 0 };

	/* The name is cut: -E2BIG is no error. */
	bpf_snprintf(name, sizeof(name), "%ps", &pc, sizeof(pc));
	return BEGINS(name, "bpf_trace_run") || BEGINS(name, "__bpf_trace_") ||
	       BEGINS(name, "__traceiter_");
}

/*
 * The kernel's innermost frame of the running thread, which goes to sleep; 0: not found. Frames of
 * the scheduler are not in the stack that the kernel gives, those of its tracepoint are. Global, so
 * that the verifier does not follow what comes after it for each of its results.
 */
__attribute__((noinline)) __u64 sleep_pc(void)
{
	__u32 zero = 0, n = 0, last = 0;
	struct unwind *u = bpf_map_lookup_elem(&unwinds, &zero);
	long bytes;

	if (!u)
		return 0;
	bytes = bpf_get_task_stack(bpf_get_current_task_btf(), u->kernel, sizeof(u->kernel), 0);
	if (bytes > 0)
		n = (__u32)bytes / 8;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < SWITCH_FRAMES && i + 2 < n; i++) {
		if (switch_pc && u->kernel[i] == switch_pc)
			return u->kernel[i + 1 + is_iterator(u->kernel[i + 1])];
	}
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < SWITCH_FRAMES && i + 1 < n; i++) {
		if (!is_tracepoint(u->kernel[i]))
			continue;
		last = i + 1;
		if (!is_iterator(u->kernel[i]))
			switch_pc = u->kernel[i];
	}
	if (!last || last > SWITCH_FRAMES)
		return 0;
	return u->kernel[last];
}

/*
 * Enters the running thread as a sleeper: at the user's frames from @user_pc outwards, and those of
 * the kernel if the attachment wants them. Global, as image_number().
 */
__attribute__((noinline)) int sleeper_enter(__u32 slot, __u64 user_pc)
{
	const struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct table table, *t = &table;
	__u64 kernel_pc = 0, group;
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
	s->key[1] = kernel_pc && u->depth ? u->place[0] | group | PROFIL_PLACE_FOLDED : 0;
	*(volatile __u64 *)&s->since_ns = bpf_ktime_get_ns();
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

/* A sleep of the running thread begins. Global, as insert(). */
__attribute__((noinline)) int sleep_account(void)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct profil_thread *thread = thread_of(task);

	if (thread)
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
 * The part of the sleep that is over on this CPU which is not counted. It is no argument, because
 * all functions of a call chain share 512 bytes of stack.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} sleep_taken SEC(".maps");

/* The sleep of @task, which runs next on this CPU, is over. */
static __always_inline void sleep_settle(struct task_struct *task)
{
	struct profil_thread *thread = bpf_task_storage_get(&threads, task, NULL, 0);
	__u32 zero = 0;
	__u64 *taken_ns = bpf_map_lookup_elem(&sleep_taken, &zero);

	if (taken_ns)
		*taken_ns = thread ? sleep_closes(thread, bpf_ktime_get_ns()) : 0;
}

/* Counts the sleep of thread @tid, if it is a sleeper of target @index. Global, as insert(). */
__attribute__((noinline)) int sleeper_leave(__u32 index, __u32 tid)
{
	struct profil_target *target = PLACE(&tables.target[index % PROFIL_MAX_TARGETS]);
	struct profil_sleeper *s, copy;
	struct table table, *t = &table;
	__u32 zero = 0;
	const __u64 *taken_ns = bpf_map_lookup_elem(&sleep_taken, &zero);
	__u64 n, slept_ns;

	if (target->flags & PROFIL_TARGET_CLOSED || !table_of(t, target->slot))
		return 0;
	s = sleeper_of(t, tid, false);
	if (!s)
		return 0;
	copy = *s;
	*(volatile __u64 *)&s->since_ns = 0;
	__sync_lock_test_and_set(&s->tid, 0);
	if (!copy.since_ns)
		return 0;
	slept_ns = bpf_ktime_get_ns() - copy.since_ns;
	if (!taken_ns || slept_ns <= *taken_ns)
		return 0;
	n = thin(&target->elapsed_ns, target->period_ns, slept_ns - *taken_ns);
	if (!n)
		return 0;
	kept_count(target->slot, copy.key[0], copy.key[1], copy.node, n);
	__sync_fetch_and_add(&target->total, n);
	return 0;
}

/* A sleep of the running thread begins for the target of @entry. Global, as insert(). */
__attribute__((noinline)) int sleep_begin(const struct sample *s, __u64 entry)
{
	const struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct profil_target *target = target_of(entry);
	__u64 pc;

	if (!s || is_missed(task, entry, true))
		return 0;
	pc = profil_pc_of(s, task, entry, target);
	sleeper_enter(target->slot, pc == s->user_pc ? pc : 0);
	return 0;
}

/* The same for the wide attachment @i. Global, as observe_wide_one(). */
__attribute__((noinline)) int sleep_begin_wide(const struct sample *s, __u32 i)
{
	const struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct profil_target *target = wide_target(i);

	if (s && (scope_is_all(target->slot) || scope_of(target->slot) == SCOPE_HOLDS))
		sleeper_enter(target->slot, wide_user_pc(s, task, target));
	return 0;
}

static __always_inline bool counts_sleep(const struct profil_target *target)
{
	return (target->flags & (PROFIL_TARGET_CLOCKS | PROFIL_TARGET_CLOSED)) ==
	       *(volatile __u32 *)&tables.off_cpu;
}

/*
 * Calls sleep_begin() for the running thread @task, or sleeper_leave() for thread @tid, for all its
 * targets. A thread's real uid does not change while it sleeps, so that the wide attachments of
 * other users cost it a comparison.
 */
static __always_inline void sleep_all(const struct sample *s, struct task_struct *task, __u32 tid)
{
	__u32 end = buckets(), tgid = tgid_of(task), uid;

	for (__u32 which = 0; which < 2 && which < end; which++) {
		const struct profil_bucket *bucket = bucket_of(tgid, which);

		for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
			__u64 entry = read_entry(bucket, i);

			if (!entry_is(entry, tgid) || !counts_sleep(target_of(entry)))
				continue;
			if (tid)
				sleeper_leave(profil_entry_target(entry), tid);
			else
				sleep_begin(s, entry);
		}
	}
	if (!*(volatile __u32 *)&tables.wide.n)
		return;
	uid = BPF_CORE_READ(cred_of(task), uid.val);
	for (__u32 i = 0; i < PROFIL_MAX_WIDE && i < *(volatile __u32 *)&tables.wide.n; i++) {
		if (!profil_wide_is_for(tables.wide.of[i], uid) || !counts_sleep(wide_target(i)))
			continue;
		if (tid)
			sleeper_leave(profil_wide_target(tables.wide.of[i]), tid);
		else
			sleep_begin_wide(s, i);
	}
}

#endif
