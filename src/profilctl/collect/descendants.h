/* descendants.h - the processes below others */
#ifndef PROFIL_PROFILCTL_COLLECT_DESCENDANTS_H
#define PROFIL_PROFILCTL_COLLECT_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Finds the living descendants of the processes @pids, without those that are in @pids themselves.
 * A process whose parent has ended is not found: it is its subreaper's child. The caller frees
 * @out. Returns 0 or a negative errno.
 */
int descendants(pid_t **out, size_t *nout, const pid_t *pids, size_t n);

/* Says whether @pid is one of @pids. */
bool descendants_has(const pid_t *pids, size_t n, pid_t pid);

#endif
