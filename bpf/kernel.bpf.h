/* kernel.bpf.h - the kernel's structures, as far as the programs read them (CO-RE) */
#ifndef PROFIL_BPF_KERNEL_BPF_H
#define PROFIL_BPF_KERNEL_BPF_H

#include <linux/bpf_perf_event.h>
#include <linux/types.h>

#include <bpf/bpf_helpers.h>

#include "core/arch.h"

/* clang 21 and newer warn where BPF_CORE_READ() reads a member of a const structure. */
#ifdef __clang__
#if __has_warning("-Wdefault-const-init-var-unsafe")
#pragma clang diagnostic ignored "-Wdefault-const-init-var-unsafe"
#endif
#endif

struct atomic_t {
	int counter;
} __attribute__((preserve_access_index));

struct signal_struct {
	struct atomic_t live;
} __attribute__((preserve_access_index));

#define PF_EXITING 0x4 /* linux/sched.h: the thread is in do_exit() */
#define TASK_DEAD 0x80 /* linux/sched.h: the thread does not run again */

struct linux_binprm {
	unsigned int secureexec : 1;
	unsigned int interp_flags;
} __attribute__((preserve_access_index));

/* linux/binfmts.h: the caller may not read what it executes. */
#define BINPRM_FLAGS_ENFORCE_NONDUMP 1

struct rq;

struct cfs_rq {
	struct rq *rq;
} __attribute__((preserve_access_index));

struct sched_entity {
	struct cfs_rq *cfs_rq; /* of the CPU that the task is on */
	unsigned long long exec_start;
	unsigned long long sum_exec_runtime;
} __attribute__((preserve_access_index));

struct mm_struct;
struct nsproxy;
struct pid;

typedef struct __attribute__((preserve_access_index)) {
	unsigned int val;
} kuid_t;

struct cred {
	kuid_t uid;
} __attribute__((preserve_access_index));

struct kernfs_node {
	unsigned long long id;
} __attribute__((preserve_access_index));

struct cgroup {
	struct kernfs_node *kn;
} __attribute__((preserve_access_index));

struct css_set {
	struct cgroup *dfl_cgrp;
} __attribute__((preserve_access_index));

struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct file;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} __attribute__((preserve_access_index));

struct files_struct {
	struct fdtable *fdt;
} __attribute__((preserve_access_index));

#define TASK_STOPPED_TRACED 0xc /* linux/sched.h */

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct sched_entity se;
	struct signal_struct *signal;
	unsigned int in_execve : 1;
	unsigned int in_iowait : 1;
	unsigned int self_exec_id; /* the low half of it, where it is wider */
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct nsproxy *nsproxy;
	struct files_struct *files;
	const struct cred *cred;
	struct css_set *cgroups;
	unsigned long long start_boottime;
	char comm[16];
} __attribute__((preserve_access_index));

/* x86-64: the thread pointer. arm64: tpidr_el0. */
struct thread_struct___x86 {
	unsigned long fsbase;
} __attribute__((preserve_access_index));

struct task_struct___x86 {
	struct thread_struct___x86 thread;
} __attribute__((preserve_access_index));

struct thread_struct___arm64 {
	struct {
		unsigned long tp_value;
	} uw;
} __attribute__((preserve_access_index));

struct task_struct___arm64 {
	struct thread_struct___arm64 thread;
} __attribute__((preserve_access_index));

/* arm64: the kernel's count of interrupts and of sections without preemption. */
struct thread_info___arm64 {
	__u64 preempt_count;
} __attribute__((preserve_access_index));

struct task_struct___counts {
	struct thread_info___arm64 thread_info;
} __attribute__((preserve_access_index));

struct hrtimer {
	void *function;
} __attribute__((preserve_access_index));

extern struct task_struct *bpf_task_from_pid(int pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *task) __ksym __weak;
extern void *bpf_rdonly_cast(const void *object, __u32 btf_id) __ksym __weak; /* Linux 6.2 */

#endif
