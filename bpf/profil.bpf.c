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
 * an exec is missed only where one task has been preempted in each. The next tick sees to it.
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

/* Asked by the daemon, where an exec may be missed: the image of *@tgid, 0 where it has gone. */
SEC("?syscall")
int image_of(const __u32 *tgid)
{
	struct task_struct *task = bpf_task_from_pid((int)*tgid);
	__u32 image;

	if (!task)
		return 0;
	image = profil_entry_image(task->self_exec_id);
	bpf_task_release(task);
	return (int)image;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
