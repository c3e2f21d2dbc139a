/* observe.bpf.h - which attachments count a sample: those of its process, and wide scopes */
#ifndef PROFIL_BPF_OBSERVE_BPF_H
#define PROFIL_BPF_OBSERVE_BPF_H

#include "core/proto.h"
#include "cpu_time.bpf.h"
#include "place.bpf.h"
#include "process_table.bpf.h"
#include "call_tree.bpf.h"
#include "permission.bpf.h"
#include "last_place.bpf.h"

/*
 * Whether these programs count places, with which the verifier takes eight times as long. If not,
 * tick_or_exit() counts the profiles that processes start themselves, until another is loaded that
 * does (clock/late_programs.c).
 */
const volatile bool counts_places = true;

/* One sample of the current thread. No padding, because it is passed to global functions. */
struct sample {
	__u64 user_pc;	 /* in user mode, or where the thread left it; 0: a kernel thread */
	__u64 kernel_pc; /* 0: in user mode, or unknown */
	struct cpu_time time;
	__u32 flags;	 /* PROFIL_TARGET_CLOCKS: targets with the same bits count it */
	__u32 user_mode; /* 0: in kernel mode, or unknown */
};
_Static_assert(sizeof(struct sample) == 48, "no padding");

/* --- wide scopes ------------------------------------------------------------------------------ */

#define CGROUP_LEVELS 32

static __always_inline bool is_below(__u64 cgroup)
{
	for (int level = 0; level < CGROUP_LEVELS; level++) {
		__u64 id = bpf_get_current_ancestor_cgroup_id(level);

		if (id == cgroup)
			return true;
		if (!id)
			return false;
	}
	return false;
}

/* True if the program of @mm is the file of @o, or the one that was there before it. */
static __always_inline bool executes(struct mm_struct *mm, const struct profil_observer *o)
{
	struct inode *inode = mm ? BPF_CORE_READ(mm, exe_file, f_inode) : NULL;
	__u64 ino = inode ? BPF_CORE_READ(inode, i_ino) : 0;

	return ino && (ino == o->ino || ino == o->former_ino) &&
	       BPF_CORE_READ(inode, i_sb, s_dev) == o->dev;
}

/* True if the attachment in @slot counts all tasks. */
static __always_inline bool scope_is_all(__u32 slot)
{
	const struct profil_observer *o = bpf_map_lookup_elem(&observers, &slot);

	return o && o->scope == PROFIL_SCOPE_MACHINE && !(o->flags & PROFIL_OBSERVER_NARROW);
}

static __always_inline bool is_selected(const struct profil_observer *o, struct task_struct *task)
{
	struct task_struct *leader;
	__u64 name[2] = { 0 };

	switch (o->scope) {
	case PROFIL_SCOPE_USER:
		return BPF_CORE_READ(cred_of(task), uid.val) == o->uid && BPF_CORE_READ(task, mm);
	case PROFIL_SCOPE_CGROUP:
		return is_below(o->cgroup);
	case PROFIL_SCOPE_COMMAND:
		leader = BPF_CORE_READ(task, group_leader);
		bpf_probe_read_kernel_str(name, sizeof(name), &leader->comm);
		return name[0] == *(const __u64 *)o->command &&
		       name[1] == *(const __u64 *)(o->command + 8);
	case PROFIL_SCOPE_EXE:
		return executes(BPF_CORE_READ(task, mm), o);
	default:
		return o->scope == PROFIL_SCOPE_MACHINE;
	}
}

enum scope_result {
	SCOPE_NONE,
	SCOPE_HOLDS,
	SCOPE_HIDES, /* a process of the owner's that it may not observe */
};

/* Says whether the attachment in @slot observes the running task: enum scope_result. */
__attribute__((noinline)) int scope_of(__u32 slot)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct profil_observer *o = bpf_map_lookup_elem(&observers, &slot);

	if (!o || !is_selected(o, task))
		return SCOPE_NONE;
	if (!(o->flags & PROFIL_OBSERVER_NARROW) || may_trace(o, task))
		return SCOPE_HOLDS;
	return BPF_CORE_READ(cred_of(task), uid.val) == o->uid ? SCOPE_HIDES : SCOPE_NONE;
}

/* --- counting --------------------------------------------------------------------------------- */

static __always_inline bool is_observed(const struct profil_target *target, const struct sample *s)
{
	return s->user_mode || !(target->flags & PROFIL_TARGET_USER_ONLY);
}

/* The index of the target of the wide attachment @i. */
static __always_inline __u32 wide_index(__u32 i)
{
	return profil_wide_target(tables.wide.of[i % PROFIL_MAX_WIDE]) % PROFIL_MAX_TARGETS;
}

static __always_inline struct profil_target *wide_target(__u32 i)
{
	return PLACE(&tables.target[wide_index(i)]);
}

/*
 * Adds the CPU time of @s, whose task the owner of the wide attachment @i may not observe, to its
 * hidden_ns. Global, as image_number().
 */
__attribute__((noinline)) int hidden_book(const struct sample *s, __u32 i)
{
	const struct profil_target *target = wide_target(i);
	struct table t;

	if (s && !(target->flags & PROFIL_TARGET_EVENTS) && is_observed(target, s) &&
	    table_of(&t, target->slot))
		TABLE_ADD(&t, hidden_ns, s->time.ns);
	return 0;
}

/* 0 if it may be the entry point of a new image that the owner may not read: see profil_pc_of(). */
static __always_inline __u64 wide_user_pc(const struct sample *s, const struct task_struct *task,
					  const struct profil_target *target)
{
	if (!s->user_mode && target->flags & PROFIL_TARGET_UNPRIVILEGED &&
	    BPF_CORE_READ_BITFIELD(task, in_execve))
		return 0;
	return s->user_pc;
}

#define WIDE_LATER 0x80000000u /* of its result: observe_wide_leaf() is to be called */

/*
 * Counts the place of @s for the wide attachment @i if it is on the clock of @s. Returns 1 + how
 * many samples are to be counted at their stack as well, 0 without a stack, and WIDE_LATER. Global,
 * so that the verifier checks it once, not for each value of @i.
 */
__attribute__((noinline)) int observe_wide_one(const struct sample *s, __u32 i)
{
	const struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct profil_target *target = wide_target(i);
	enum scope_result scope;
	__u32 n, later;
	__u64 user_pc;
	int counted;

	if (!s || (target->flags & (PROFIL_TARGET_CLOCKS | PROFIL_TARGET_CLOSED)) != s->flags)
		return 0;
	scope = scope_is_all(target->slot) ? SCOPE_HOLDS : scope_of(target->slot);
	if (scope == SCOPE_HIDES)
		hidden_book(s, i);
	if (scope != SCOPE_HOLDS)
		return 0;
	user_pc = wide_user_pc(s, task, target);
	n = samples_for(target, &s->time, first_of(&s->time, target, wide_index(i)));
	if (!n && !is_first(&s->time, target))
		return 0;
	if (!is_observed(target, s)) {
		last_dropped(s->flags, wide_index(i));
		return 0;
	}
	counted = place_count_of(target->slot, task, user_pc, s->kernel_pc, n);
	if (!counted)
		return 0;
	__sync_fetch_and_add(&target->total, n);
	later = counted == COUNTED_LATER ? WIDE_LATER : 0;
	if (target->flags & PROFIL_TARGET_STACKS)
		return (int)(((1 + n) & ~WIDE_LATER) | later);
	if (!later)
		last_counted(s->flags, wide_index(i), 0);
	return (int)later;
}

/* leaf_count() for the wide attachment @i. Global, as observe_wide_one(). */
__attribute__((noinline)) int observe_wide_leaf(__u32 i, __u32 flags)
{
	const struct profil_target *target = wide_target(i);

	leaf_count(target->slot);
	if (!(target->flags & PROFIL_TARGET_STACKS))
		last_counted(flags, wide_index(i), 0);
	return 0;
}

/* Not called by observe_wide_one(): both together would exceed the BPF stack. Global, as it. */
__attribute__((noinline)) int observe_wide_stack(const struct sample *s, __u32 i, __u32 n)
{
	const struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct profil_target *target = wide_target(i);

	if (!s)
		return 0;
	last_counted(s->flags, wide_index(i),
		     (__u32)stack_count(target->slot, wide_user_pc(s, task, target), s->kernel_pc,
					n, false));
	return 0;
}

/* Counts @s of @task for the attachments with a wide scope on its clock. */
static __always_inline void observe_wide(const struct sample *s, const struct task_struct *task)
{
	__u32 uid = BPF_CORE_READ(cred_of((struct task_struct *)task), uid.val);

	for (__u32 i = 0; task->pid && i < PROFIL_MAX_WIDE; i++) { /* pid 0: idle */
		__u32 stacks;

		if (i >= *(volatile __u32 *)&tables.wide.n)
			break;
		if (!profil_wide_is_for(tables.wide.of[i], uid))
			continue;
		stacks = (__u32)observe_wide_one(s, i);
		if (stacks & WIDE_LATER)
			observe_wide_leaf(i, s->flags);
		stacks &= ~WIDE_LATER;
		if (stacks)
			observe_wide_stack(s, i, stacks - 1);
	}
}

#endif
