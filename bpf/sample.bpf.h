/* sample.bpf.h - one sample: where the thread was, find the region, bin the pc, count */
#ifndef PROFIL_BPF_SAMPLE_BPF_H
#define PROFIL_BPF_SAMPLE_BPF_H

#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_tracing.h>

#include "count.bpf.h"
#include "cpu_time.bpf.h"
#include "kernel.bpf.h"
#include "observe.bpf.h"
#include "process_table.bpf.h"

/* Distance of the per-CPU variable __irq_regs from the tick's per-CPU timer; 0: unknown. */
const volatile __u64 irq_regs_offset;

/* --- profil targets --------------------------------------------------------------------------- */

static __always_inline const struct profil_region *region_at(const struct profil_target *target,
							     __u32 index)
{
	return bpf_map_lookup_elem(&regions, &index);
}

static __always_inline struct profil_chunk *chunk_at(const struct profil_target *target,
						     __u32 number)
{
	void *map = bpf_map_lookup_elem(&chunks, &number);
	__u32 element = 0;

	return map ? bpf_map_lookup_elem(map, &element) : NULL;
}

/* Counts @n samples without a counter. Global, as insert(). */
__attribute__((noinline)) int miss(__u64 entry, __u64 pc, __u32 n)
{
	profil_miss(target_of(entry), entry, pc, n);
	return 0;
}

/* Counts @n samples of @entry's process at @pc. Global, as insert(). */
__attribute__((noinline)) int hit(__u64 entry, __u64 pc, __u32 n)
{
	enum profil_outcome outcome = profil_hit(target_of(entry), entry, pc, n);

	if (outcome == PROFIL_OUTCOME_CLOSED)
		return 0;
	if (outcome == PROFIL_OUTCOME_MISSED)
		miss(entry, pc, n);
	set_dirty(entry);
	return 0;
}

/*
 * The user's pc, which a profile counts. Late in execve() the saved pc is the @new_image's entry
 * point, before the exec programs have run. An unprivileged owner must not learn that address.
 */
static __always_inline __u64 pc_shown(__u64 user_pc, bool user_mode, __u32 target_flags,
				      bool new_image)
{
	if (user_pc && !user_mode && target_flags & PROFIL_TARGET_UNPRIVILEGED && new_image)
		return PROFIL_PC_NOWHERE;
	return user_pc;
}

static __always_inline __u64 profil_pc_of(const struct sample *s, const struct task_struct *task,
					  __u64 entry, const struct profil_target *target)
{
	bool new_image = BPF_CORE_READ_BITFIELD(task, in_execve) && !is_image(task, entry);

	return pc_shown(s->user_pc, s->user_mode, target->flags, new_image);
}

/*
 * True if the exec programs have missed an exec of @task (see sched_process_exec_again): the
 * entry's exec_id is known and not the task's. Whether the caller of execve() may read the new
 * image is no longer known, so the worst is assumed.
 */
static __always_inline bool is_missed(const struct task_struct *task, __u64 entry, bool is_event)
{
	if (!(entry & PROFIL_ENTRY_EXEC_IDS) || is_image(task, entry) ||
	    BPF_CORE_READ_BITFIELD(task, in_execve))
		return false;
	if (!is_event) /* an event may occur inside the lock of the ring */
		exec_of(tgid_of(task), profil_entry_exec_id(task->self_exec_id), true);
	return true;
}

/* True if the thread's account of events is in @target: see event_time_own(). */
static __always_inline bool has_account(const struct profil_target *target, __u64 entry,
					const struct task_struct *task)
{
	return !(target->flags & PROFIL_TARGET_OBSERVE) &&
	       !(entry & (PROFIL_ENTRY_FORKED | PROFIL_ENTRY_UNBOUND)) && task->pid == task->tgid;
}

/* How many samples of @entry's target @s is. The event's time is known after the first entry. */
static __always_inline __u32 samples_of(struct sample *s, struct profil_target *target, __u64 entry,
					struct task_struct *task)
{
	struct cpu_time own;

	if (!s->flags && has_account(target, entry, task)) {
		event_time_own(&own, task, target);
		return samples_for(target, &own, own.clock_ns);
	}
	if (!s->flags && !s->time.clock_ns)
		event_time(&s->time, task, target);
	return samples_for(target, &s->time,
			   first_of(&s->time, target, profil_entry_target(entry)));
}

/* Counts @s of @task for the target of @entry. */
static __always_inline int count_entry(struct sample *s, struct task_struct *task, __u64 entry)
{
	__u32 index = profil_entry_target(entry), node = 0, n;
	struct profil_target *target = target_of(entry);
	int counted;
	__u64 pc;

	if (is_missed(task, entry, s->flags >= PROFIL_TARGET_EVENT))
		return 0;
	pc = profil_pc_of(s, task, entry, target);
	n = samples_of(s, target, entry, task);
	if (!n && !is_first(&s->time, target))
		return 0;
	if (!(target->flags & PROFIL_TARGET_OBSERVE)) {
		if (pc && n)
			hit(entry, pc, n);
		if (pc && s->flags == PROFIL_TARGET_TICK)
			last_set(index, pc, entry, 0, LAST_COUNTED);
		return 0;
	}
	if (!counts_places)
		return 0;
	if (!is_observed(target, s)) {
		last_dropped(s->flags, index);
		return 0;
	}
	pc = pc == s->user_pc ? pc : 0;
	counted = place_count(target->slot, pc, s->kernel_pc, n);
	if (!counted)
		return 0;
	if (counted == COUNTED_LATER)
		leaf_count(target->slot);
	__sync_fetch_and_add(&target->total, n);
	if (target->flags & PROFIL_TARGET_STACKS)
		node = (__u32)stack_count(target->slot, pc, s->kernel_pc, n, false);
	last_counted(s->flags, index, node);
	return 0;
}

/* The same, where a process has several entries, and on the other clocks. Global, as insert(). */
__attribute__((noinline)) int count_sample(struct sample *s, __u64 entry)
{
	return s ? count_entry(s, (void *)bpf_get_current_task_btf(), entry) : 0;
}

/* --- the entries of the current process ------------------------------------------------------- */

static __always_inline bool is_on_clock(__u64 entry, __u32 tgid, __u32 flags)
{
	return entry_is(entry, tgid) && (target_of(entry)->flags & PROFIL_TARGET_CLOCKS) == flags;
}

/*
 * The first entry of @tgid whose target is on the clock or event of @flags; 0: none. Global, as
 * insert().
 */
__attribute__((noinline)) __u64 first_entry(__u32 tgid, __u32 flags)
{
	__u32 end = buckets();

	for (__u32 which = 0; which < 2 && which < end; which++) {
		const struct profil_bucket *bucket = bucket_of(tgid, which);

		for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
			__u64 entry = read_entry(bucket, i);

			if (is_on_clock(entry, tgid, flags))
				return entry;
		}
	}
	return 0;
}

/* In place of an entry: there may be more than one. */
#define SEVERAL_ENTRIES 1

/* The entry of @tgid, or SEVERAL_ENTRIES; 0: it has none. Inline, because a call takes 20 ns. */
static __always_inline __u64 only_entry(__u32 tgid)
{
	const struct profil_bucket *bucket = bucket_of(tgid, 0);
	__u64 entry = 0;

	if (buckets() > 1)
		return first_entry(tgid, 0) ? SEVERAL_ENTRIES : 0;
	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		__u64 e = read_entry(bucket, i);

		if (entry_is(e, tgid))
			entry = entry ? SEVERAL_ENTRIES : e;
	}
	return entry;
}

/* Counts @s for all targets of @tgid on its clock or event. Global, as insert(). */
__attribute__((noinline)) int count_all(struct sample *s, __u32 tgid)
{
	__u32 end = buckets();

	for (__u32 which = 0; s && which < 2 && which < end; which++) {
		const struct profil_bucket *bucket = bucket_of(tgid, which);

		for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
			__u64 entry = read_entry(bucket, i);

			if (is_on_clock(entry, tgid, s->flags))
				count_sample(s, entry);
		}
	}
	return 0;
}

/* --- where the thread was --------------------------------------------------------------------- */

/* The verifier wants constant offsets into the context; the asm keeps clang from merging reads. */
static __always_inline void sample_event(struct sample *s, struct task_struct *task,
					 struct bpf_perf_event_data *ctx)
{
	__u64 pc = arch_pc(&ctx->regs), mode = arch_mode(&ctx->regs);

	asm volatile("" : "+r"(pc), "+r"(mode));
	s->user_mode = arch_mode_is_user(mode);
	if (s->user_mode) {
		s->user_pc = pc;
	} else {
		s->kernel_pc = pc;
		s->user_pc = arch_pc((struct arch_regs *)bpf_task_pt_regs(task));
	}
}

/* The kernel's pc at a tracepoint is the innermost frame of the kernel's stack. */
static __always_inline void sample_tracepoint(struct sample *s, struct task_struct *task, void *ctx)
{
	const struct arch_regs *user = (void *)bpf_task_pt_regs(task);

	s->user_pc = arch_pc(user);
	bpf_get_stack(ctx, &s->kernel_pc, sizeof(s->kernel_pc), 0);
}

/*
 * The interrupted registers: per CPU, the kernel keeps a pointer to them in __irq_regs. Pointer and
 * registers are read into the fields of @s, because the stack frames of a chain of calls may not
 * exceed 512 bytes.
 */
static __always_inline void sample_tick(struct sample *s, struct task_struct *task, __u64 timer)
{
	const struct arch_regs *user = (void *)bpf_task_pt_regs(task);
	__u64 *pc = &s->user_pc, *mode = &s->kernel_pc; /* beside each other, as the registers */

	_Static_assert(offsetof(struct sample, kernel_pc) == 8, "read together with user_pc");
	s->flags = PROFIL_TARGET_TICK;
	if (irq_regs_offset &&
	    !bpf_probe_read_kernel(mode, sizeof(*mode), (void *)(timer + irq_regs_offset)) &&
	    *mode &&
	    !bpf_probe_read_kernel(pc, 2 * sizeof(*pc), &arch_pc((struct arch_regs *)*mode))) {
		s->user_mode = arch_mode_is_user(*mode);
		s->kernel_pc = s->user_mode ? 0 : *pc;
	} else {
		s->kernel_pc = 0;
	}
	s->user_pc = arch_pc(user);
}

#endif
