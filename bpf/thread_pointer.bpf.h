/* thread_pointer.bpf.h - the thread pointer, from which thread-local data is found */
#ifndef PROFIL_BPF_THREAD_POINTER_BPF_H
#define PROFIL_BPF_THREAD_POINTER_BPF_H

#include <bpf/bpf_core_read.h>

#include "kernel.bpf.h"

/* The thread pointer of the running thread. */
static __always_inline __u64 thread_pointer(struct task_struct *task)
{
	if (bpf_core_field_exists(struct thread_struct___x86, fsbase))
		return BPF_CORE_READ((struct task_struct___x86 *)task, thread.fsbase);
	if (bpf_core_field_exists(struct thread_struct___arm64, uw))
		return BPF_CORE_READ((struct task_struct___arm64 *)task, thread.uw.tp_value);
	return 0;
}

#endif
