/* permission.bpf.h - whether an attachment's owner may read a task's memory */
#ifndef PROFIL_BPF_PERMISSION_BPF_H
#define PROFIL_BPF_PERMISSION_BPF_H

#include <stdbool.h>

#include "core/observers.h"
#include "vma.bpf.h"

typedef struct __attribute__((preserve_access_index)) {
	unsigned int val;
} kgid_t;

struct user_namespace {
	struct user_namespace *parent;
	int level; /* 0: the initial one */
	kuid_t owner;
	struct ns_common ns;
} __attribute__((preserve_access_index));

struct cred___ids {
	kuid_t uid;
	kgid_t gid;
	kuid_t suid;
	kgid_t sgid;
	kuid_t euid;
	kgid_t egid;
	struct {
		__u64 val; /* a field, because clang 19 crashes on the offset of an empty struct */
	} cap_permitted;
	struct user_namespace *user_ns;
} __attribute__((preserve_access_index));

struct task_struct___cred {
	const struct cred___ids *real_cred;
} __attribute__((preserve_access_index));

/* Since Linux 6.19 mm->flags is a bitmap in a struct; its first word has the former meaning. */
struct mm_struct___bitmap {
	struct {
		unsigned long word[1];
	} flags;
} __attribute__((preserve_access_index));

#define MM_DUMPABLE_MASK 3
#define MM_DUMPABLE_USER 1 /* SUID_DUMP_USER */

/* In Linux 7.2 it is no longer there, but in what an exec gives the task. */
enum task_dumpable {
	TASK_DUMPABLE_OWNER = 1,
};

struct task_exec_state {
	enum task_dumpable dumpable;
} __attribute__((preserve_access_index));

struct task_struct___exec {
	struct task_exec_state *exec_state;
} __attribute__((preserve_access_index));

static __always_inline bool is_dumpable(struct task_struct *task, struct mm_struct *mm)
{
	__u64 flags = 0, offset;

	if (bpf_core_field_exists(struct task_struct___exec, exec_state))
		return BPF_CORE_READ((struct task_struct___exec *)task, exec_state, dumpable) ==
		       TASK_DUMPABLE_OWNER;
	if (bpf_core_field_exists(struct mm_struct___bitmap, flags))
		offset = bpf_core_field_offset(struct mm_struct___bitmap, flags);
	else
		offset = bpf_core_field_offset(struct mm_struct, flags);
	bpf_probe_read_kernel(&flags, sizeof(flags), (void *)mm + offset);
	return (flags & MM_DUMPABLE_MASK) == MM_DUMPABLE_USER;
}

static __always_inline const struct cred___ids *cred_of(struct task_struct *task)
{
	return BPF_CORE_READ((struct task_struct___cred *)task, real_cred);
}

#define USER_NAMESPACES_MAX 33 /* nested ones */

/*
 * The user whose process @task is. In a user namespace that is the maker of the outermost one below
 * the initial one, because it can have processes with each id that the namespace maps.
 */
static __always_inline __u32 account_of(struct task_struct *task)
{
	const struct cred___ids *cred = cred_of(task);
	struct user_namespace *ns = BPF_CORE_READ(cred, user_ns);
	__u32 account = BPF_CORE_READ(cred, uid.val);

	for (int i = 0; i < USER_NAMESPACES_MAX && BPF_CORE_READ(ns, level) > 0; i++) {
		account = BPF_CORE_READ(ns, owner.val);
		ns = BPF_CORE_READ(ns, parent);
	}
	return account;
}

/*
 * True if ptrace_may_access(PTRACE_MODE_READ) would allow @o's owner, without capabilities over
 * others, to read @task: all ids of the task are the owner's, it has no capability that the owner
 * lacks, it is in the same user namespace, and it is dumpable. A process is not dumpable if it has
 * been a set-id program, executes a file that its user may not read, or has said so by prctl(). The
 * owner could open the task's /proc/PID/maps as well, so it learns nothing new. A security module
 * may be stricter than this.
 */
static __always_inline bool may_trace(const struct profil_observer *o, struct task_struct *task)
{
	const struct cred___ids *cred = cred_of(task);
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	__u64 caps = 0;

	if (BPF_CORE_READ(cred, uid.val) != o->uid || BPF_CORE_READ(cred, euid.val) != o->uid ||
	    BPF_CORE_READ(cred, suid.val) != o->uid)
		return false;
	if (BPF_CORE_READ(cred, gid.val) != o->gid || BPF_CORE_READ(cred, egid.val) != o->gid ||
	    BPF_CORE_READ(cred, sgid.val) != o->gid)
		return false;
	bpf_probe_read_kernel(&caps, sizeof(caps),
			      (void *)cred +
				      bpf_core_field_offset(struct cred___ids, cap_permitted));
	return !(caps & ~o->caps) && BPF_CORE_READ(cred, user_ns, ns.inum) == o->user_ns && mm &&
	       is_dumpable(task, mm);
}

#define CAP_SYS_PTRACE_BIT (1ull << 19)
#define INITIAL_USER_NAMESPACE 0xeffffffdu /* linux/proc_ns.h: PROC_USER_INIT_INO */

/* True if @o's owner may read @task's memory: may_trace(), or CAP_SYS_PTRACE over all tasks. */
static __always_inline bool may_read(const struct profil_observer *o, struct task_struct *task)
{
	return (o->caps & CAP_SYS_PTRACE_BIT && o->user_ns == INITIAL_USER_NAMESPACE) ||
	       may_trace(o, task);
}

#endif
