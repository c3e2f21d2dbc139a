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

#define THREAD_KEYS_MAX 1024 /* PTHREAD_KEYS_MAX */
#define THREAD_KEYS 32	     /* of a block */

/*
 * Reads what the running thread has for @key of thread-specific data; the blocks of glibc are
 * @specific bytes from the thread pointer.
 */
static __always_inline bool thread_specific(__u64 *out, __s16 specific, __u32 key)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u64 at, block = 0;

	if (key >= THREAD_KEYS_MAX)
		return false;
	at = thread_pointer(task) + (__u64)(__s64)specific + key / THREAD_KEYS * 8;
	if (bpf_probe_read_user(&block, sizeof(block), (void *)at) || !block)
		return false;
	at = block + key % THREAD_KEYS * 16 + 8;
	return !bpf_probe_read_user(out, sizeof(*out), (void *)at) && *out;
}

/* Reads the word of thread-local data @offset bytes from the thread pointer. */
static __always_inline bool thread_local_word(__u64 *out, __s16 offset)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u64 at = thread_pointer(task) + (__u64)(__s64)offset;

	return !bpf_probe_read_user(out, sizeof(*out), (void *)at) && *out;
}

#endif
