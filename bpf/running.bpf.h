/* running.bpf.h - how many threads of a process run at this moment
 *
 * While an attachment wants to know, each switch of threads notes on its CPU which process runs
 * next. A sample counts the CPUs with its process. A CPU that has not switched since the attachment
 * began is noted by its own samples. Nothing is kept for a process, so no fork, exec or exit
 * changes anything.
 */
#ifndef PROFIL_BPF_RUNNING_BPF_H
#define PROFIL_BPF_RUNNING_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "kernel.bpf.h"
#include "maps.bpf.h"

struct cpu_running {
	__u32 tgid; /* of the thread that runs; 0: idle, or not known */
	__u32 n;    /* threads of the process that ran at this CPU's latest sample */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_running);
} on_cpu SEC(".maps");

#define CPUS_MOST 8192 /* CONFIG_NR_CPUS with MAXSMP */

static __always_inline struct cpu_running *running_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&on_cpu, &zero);
}

static __always_inline void running_note(__u32 tgid)
{
	struct cpu_running *here = running_here();

	if (here)
		*(volatile __u32 *)&here->tgid = tgid;
}

static long running_add(__u32 cpu, struct cpu_running *count)
{
	__u32 zero = 0;
	const struct cpu_running *there = bpf_map_lookup_percpu_elem(&on_cpu, &zero, cpu);

	if (!there)
		return 1; /* there is no such CPU */
	count->n += *(volatile __u32 *)&there->tgid == count->tgid;
	return 0;
}

/* Before a sample: counts the threads of its process that run. Global, as insert(). */
__attribute__((noinline)) int running_count(void)
{
	const struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct cpu_running count = { .tgid = (__u32)task->tgid }, *here = running_here();

	running_note(count.tgid);
	bpf_loop(CPUS_MOST, running_add, &count, 0);
	if (here)
		here->n = count.n;
	return 0;
}

/* The part of @ns of this CPU's latest sample that is its thread's. */
static __always_inline __u64 running_share(__u64 ns)
{
	const struct cpu_running *here = running_here();

	return here && here->n ? ns / here->n : ns;
}

#endif
