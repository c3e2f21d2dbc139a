/* profil.bpf.c - every program: the ticks, and the fork, exec and exit of those who are counted */
#include <stdbool.h>

#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "core/layout.h"
#include "kernel.bpf.h"
#include "processes.bpf.h"
#include "tick.bpf.h"

static __always_inline bool insert(__u64 entry)
{
	struct profil_bucket *bucket = bucket_of(profil_entry_tgid(entry));

	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		if (!read_entry(bucket, i) &&
		    !__sync_val_compare_and_swap(&bucket->entry[i], 0, entry))
			return true;
	}
	return false;
}

/*
 * Puts @next into the place of *@entry. A first tick in between may have marked it as told of:
 * *@entry says so then.
 */
static __always_inline bool change(struct profil_bucket *bucket, int i, __u64 *entry, __u64 next)
{
	__u64 seen = __sync_val_compare_and_swap(&bucket->entry[i], *entry, next);

	if (seen == *entry)
		return true;
	if (seen != (*entry | PROFIL_ENTRY_TOLD))
		return false;
	*entry = seen;
	return __sync_val_compare_and_swap(&bucket->entry[i], seen,
					   next ? next | PROFIL_ENTRY_TOLD : 0) == seen;
}

/* Takes @entry out of its place, and notes when it was its target's last. */
static __always_inline void take_out(struct profil_bucket *bucket, int i, __u64 entry,
				     struct profil_target *target)
{
	bool was_there = change(bucket, i, &entry, 0);

	if ((target->flags & PROFIL_TARGET_RAW) && profil_entry_known(entry))
		tell(PROFIL_EVENT_EXIT, entry, 0);
	if (was_there && __sync_fetch_and_add(&target->members, -1) == 1) {
		__sync_lock_test_and_set(&target->ended, 1); /* before the mark is looked at */
		mark_news(entry);
	}
}

/* Takes @tgid, whose process has gone, out of all its targets. Not static, as miss(). */
__attribute__((noinline)) int take_out_all(__u32 tgid)
{
	struct profil_bucket *bucket = bucket_of(tgid);

	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		__u64 entry = read_entry(bucket, i);

		if (entry_is(entry, tgid))
			take_out(bucket, i, entry, target_of(entry));
	}
	return 0;
}

/*
 * A child with the parent's memory counts where the parent does; one with a copy is a target of
 * its own, from its first tick on.
 *
 * The kernel passes over a program that it finds running on the same CPU already, as where a task
 * has been preempted in it. This tracepoint is one of those where nobody can be, for interrupts are
 * off; of task_newtask, since 7.0, forks were missed.
 */
SEC("tp_btf/sched_wakeup_new")
int sched_wakeup_new(__u64 *args)
{
	const struct task_struct *child = (void *)args[0];
	const struct task_struct *parent = (void *)bpf_get_current_task_btf();
	__u32 tgid = parent->tgid, childs_tgid = child->tgid;
	__u32 inherited = PROFIL_ENTRY_TARGET | PROFIL_ENTRY_NEWBORN;
	__u32 bits = PROFIL_ENTRY_FORKED | profil_entry_image(child->self_exec_id);
	struct profil_bucket *bucket = bucket_of(tgid);

	if (childs_tgid == tgid)
		return 0;
	if (child->mm != parent->mm)
		bits |= PROFIL_ENTRY_NEWBORN;
	take_out_all(childs_tgid); /* whoever had the pid before */
	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		__u64 entry = read_entry(bucket, i);
		struct profil_target *target;
		__u32 life;

		if (!entry_is(entry, tgid))
			continue;
		target = target_of(entry);
		if (!(target->flags & PROFIL_TARGET_INHERIT))
			continue;
		life = __sync_fetch_and_add(&tables.lives, PROFIL_ENTRY_LIFE) & PROFIL_ENTRY_LIVES;
		__sync_fetch_and_add(&target->members, 1);
		if (!insert(profil_entry(childs_tgid, ((__u32)entry & inherited) | bits | life)))
			__sync_fetch_and_add(&target->members, -1);
	}
	return 0;
}

/* Is this an image that whoever called execve() may not look into? */
static __always_inline bool is_secret(const struct linux_binprm *bprm)
{
	return BPF_CORE_READ_BITFIELD(bprm, secureexec) ||
	       (bprm->interp_flags & BINPRM_FLAGS_ENFORCE_NONDUMP);
}

/*
 * The new image is none of the target's business, unless its owner follows it and may. Not static,
 * as miss().
 */
__attribute__((noinline)) int exec_of(__u32 tgid, __u32 image, bool secret)
{
	struct profil_bucket *bucket = bucket_of(tgid);

	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		__u64 entry = read_entry(bucket, i);
		struct profil_target *target;

		if (!entry_is(entry, tgid) || (entry & PROFIL_ENTRY_IMAGES) == image)
			continue;
		target = target_of(entry);
		if ((target->flags & PROFIL_TARGET_FOLLOW) &&
		    !(secret && (target->flags & PROFIL_TARGET_UNPRIVILEGED))) {
			__u64 next = profil_entry_exec(entry, image);

			change(bucket, i, &entry, next);
			if (profil_entry_known(entry))
				tell(PROFIL_EVENT_EXEC, next, 0);
		} else {
			take_out(bucket, i, entry, target);
		}
	}
	return 0;
}

static __always_inline int execd(__u64 *args)
{
	const struct task_struct *task = (void *)args[0];

	return exec_of(task->tgid, profil_entry_image(task->self_exec_id),
		       is_secret((void *)args[2]));
}

SEC("tp_btf/sched_process_exec")
int sched_process_exec(__u64 *args)
{
	return execd(args);
}

/*
 * Here a task can be preempted, and no tracepoint on the way of an exec is better. Once more, then:
 * an exec is missed only where one task has been preempted in each.
 */
SEC("tp_btf/sched_process_exec")
int sched_process_exec_again(__u64 *args)
{
	return execd(args);
}

SEC("tp_btf/sched_process_exit")
int sched_process_exit(__u64 *args)
{
	const struct task_struct *task = (void *)args[0];

	if (!task->signal->live.counter)
		take_out_all(task->tgid);
	return 0;
}

/*
 * An exit may be missed, as a fork might: then this, which is not preempted either, sees the last
 * of the process. Its pid has been free for a grace period, and is given to nobody again before all
 * others have had their turn.
 */
SEC("tp_btf/sched_process_free")
int sched_process_free(__u64 *args)
{
	const struct task_struct *task = (void *)args[0];

	if (task->pid == task->tgid)
		take_out_all(task->tgid);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
