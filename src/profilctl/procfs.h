/* procfs.h - what /proc says of processes */
#ifndef PROFIL_PROCFS_H
#define PROFIL_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Reads a small file of /proc/PID, as a string. Returns its length; 0: it is not there. */
size_t procfs_read(pid_t pid, const char *name, char *out, size_t bytes);

bool procfs_is_kernel_thread(pid_t pid);

/* The leader of the process that thread @pid belongs to; 0: there is no such thread. */
pid_t procfs_leader(pid_t pid);

/* The name of a process or a thread in @out, "?" where it has gone. Returns @out. */
const char *procfs_comm(pid_t tid, char *out, size_t bytes);

/* Its command line, else its name; the caller frees it. NULL: for want of memory. */
char *procfs_command(pid_t pid);

/* Which processes; what is NULL does not matter. */
struct procfs_select {
	const char *comm;   /* of this name, as ps(1) shows it */
	const char *exe;    /* that run this file */
	const char *cgroup; /* or below; as /proc/PID/cgroup or the file system has it */
	const char *unit;   /* of this systemd unit; ".service" may be left out */
};

/* Says whether it leaves anybody out. */
bool procfs_is_selective(const struct procfs_select *select);

/*
 * Says whether @pid is meant: no kernel thread ever is, nor are we. If @parent is not 0, it has
 * just forked @pid: the kernel tells of a child before that is in a cgroup, its parent's.
 */
bool procfs_matches(pid_t pid, pid_t parent, const struct procfs_select *select);

/*
 * Finds those processes, kernel threads and ourselves left out, in an array that the caller frees.
 * Returns 0 or a negative errno.
 */
int procfs_find(pid_t **out, size_t *n, const struct procfs_select *select);

#endif
