/* pid.bpf.h - process ids as a pid namespace numbers them */
#ifndef PROFIL_BPF_PID_BPF_H
#define PROFIL_BPF_PID_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "kernel.bpf.h"
#include "maps.bpf.h"

struct upid {
	int nr;
	struct pid_namespace *ns;
} __attribute__((preserve_access_index));

struct pid_namespace {
	struct ns_common ns;
} __attribute__((preserve_access_index));

struct pid {
	unsigned int level;
	struct upid numbers[1];
} __attribute__((preserve_access_index));

/* The inode of the daemon's pid namespace; 0: it is the initial one, by which the kernel counts. */
const volatile __u32 pid_ns;

/* The number of @pid in the namespace with inode @ns at @level; 0: @pid is not in it. */
static __always_inline __u32 pid_number(struct pid *pid, __u32 level, __u32 ns)
{
	struct upid *number;

	if (!pid)
		return 0;
	number = (void *)((__u64)&pid->numbers[0] + level * bpf_core_type_size(struct upid));
	if (level &&
	    (level > BPF_CORE_READ(pid, level) || BPF_CORE_READ(number, ns, ns.inum) != ns))
		return 0;
	return (__u32)BPF_CORE_READ(number, nr);
}

/*
 * The id of @task's process in the daemon's pid namespace; 0: it is not in that namespace, or has
 * been reaped.
 */
static __attribute__((noinline)) __u32 tgid_in_namespace(const struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	return pid_number(BPF_CORE_READ(leader, thread_pid), tables.pid_ns_level, pid_ns);
}

static __always_inline __u32 tgid_of(const struct task_struct *task)
{
	return pid_ns ? tgid_in_namespace(task) : (__u32)task->tgid;
}

#endif
