/* process_proof.h - which process a client names by descriptors, and whether it may observe it */
#ifndef PROFIL_PROFILD_WORKER_PROCESS_PROOF_H
#define PROFIL_PROFILD_WORKER_PROCESS_PROOF_H

#include <stdint.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * Decides whether a client of user @uid may observe the process behind @pidfd. With WORK_PRIVILEGED
 * it may. With WORK_MEMBER it may unless the process is set-id or not dumpable. Otherwise the
 * process must belong to the same user, and @maps must be its /proc/PID/maps, opened by the client:
 * the kernel lets only a process open it that may read the other. Sets *@tgid and returns 0, or
 * -EACCES, -ESRCH if the process has ended, -EBADF if @pidfd is not a pidfd.
 *
 * A descriptor may be of any file, and a system call on it may block for as long as the client
 * likes. So nothing is read from one before it is known to be a pidfd or a file of procfs.
 */
int process_proof(pid_t *tgid, uint32_t flags, uid_t uid, int pidfd, int maps);

/*
 * True if @pid has CAP_SYS_PTRACE in the initial user namespace. Does not block: the main thread
 * may call it.
 */
bool process_privileged(pid_t pid);

/*
 * The same for a client that connected as @uid: false for a set-uid program, which its process may
 * have exec'd since. Reads /proc/PID/status, which may block.
 */
bool process_privileged_as(pid_t pid, uid_t uid);

#endif
