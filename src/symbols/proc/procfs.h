/* procfs.h - reads and selects processes in /proc */
#ifndef PROFIL_SYMBOLS_PROC_PROCFS_H
#define PROFIL_SYMBOLS_PROC_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <linux/types.h>

/* Reads a small file of /proc/PID as a string. Returns its length; 0: it cannot be read. */
size_t procfs_read(pid_t pid, const char *name, char *out, size_t bytes);

bool procfs_is_kernel_thread(pid_t pid);

/* Says whether there is no such process, or only a zombie. */
bool procfs_has_ended(pid_t pid);

/* The parent of process @pid; 0: it has ended, or its parent is in another pid namespace. */
pid_t procfs_parent(pid_t pid);

/* The process id of thread @pid; 0: no such thread. */
pid_t procfs_leader(pid_t pid);

/* Writes the comm of a process or thread, "?" if it has ended. Returns @out. */
const char *procfs_comm(pid_t tid, char *out, size_t bytes);

/* The command line, or the comm if that is empty; the caller frees it. NULL: out of memory. */
char *procfs_command(pid_t pid);

/* CPU time of @pid and of the children it has waited for, in steps of 10 ms; 0: it has ended. */
__u64 procfs_cpu_ns(pid_t pid);

/* The same without children. */
__u64 procfs_process_cpu_ns(pid_t pid);

/* The real user id of @pid; (uid_t)-1: it has ended. */
uid_t procfs_uid(pid_t pid);

/* Selects processes by all fields that are not NULL. */
struct procfs_select {
	const char *comm;      /* comm, as ps(1) shows it */
	const char *exe;       /* the executable */
	const char *cgroup;    /* this cgroup2 or below; procfs_find(): without its mount point */
	const char *unit;      /* systemd unit; ".service" can be omitted */
	const char *container; /* its name, or the first digits of its id */
	const char *pod;       /* its uid */
};

/* Says whether any field is set. */
bool procfs_is_selective(const struct procfs_select *select);

/* Says whether @pid is in the cgroup2 with this path, without its mount point, or below it. */
bool procfs_is_below(pid_t pid, const char *cgroup);

/*
 * Finds the processes that @select selects, except by its unit, container and pod, never kernel
 * threads and this process, in an array that the caller frees. Returns 0 or a negative errno.
 */
int procfs_find(pid_t **out, size_t *n, const struct procfs_select *select);

#endif
