/* newcomers.h - processes that begin to run a program while others are watched already */
#ifndef PROFIL_NEWCOMERS_H
#define PROFIL_NEWCOMERS_H

#include <stdbool.h>

#include "procfs.h"

struct newcomers;

struct newcomer {
	pid_t pid;
	pid_t parent; /* that it was forked by just now; 0: it has begun a program */
};

/*
 * Listens from now on for processes that @select, which must outlive it, may mean. Returns 0 or a
 * negative errno.
 */
int newcomers_open(struct newcomers **out, const struct procfs_select *select);

void newcomers_close(struct newcomers *n);

/* To be polled for reading. */
int newcomers_fd(const struct newcomers *n);

/* Says whether the kernel tells of each process. Else all are looked through once a second. */
bool newcomers_told(const struct newcomers *n);

/* Says whether the kernel has told of more than we could take in: some are not known of. */
bool newcomers_missed(const struct newcomers *n);

/*
 * Finds those that there is news of, in an array that the caller frees: some may be known already,
 * and some not be meant. Returns 0 or a negative errno.
 */
int newcomers_take(struct newcomers *n, struct newcomer **out, size_t *count);

#endif
