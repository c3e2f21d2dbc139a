/* sent_log.h - the names of the spool's files that were sent, over restarts */
#ifndef PROFIL_PROFILCTL_PUSH_SENT_LOG_H
#define PROFIL_PROFILCTL_PUSH_SENT_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/spool_files.h"

/*
 * A file with a name per line, appended to after each request that was taken: what was sent just
 * before a crash is sent again. Names, not the time of the last one: the clock can be set back.
 */
struct sent_log {
	int fd;
	char *path;
	char (*name)[sizeof(((struct spool_entry *)0)->name)]; /* sorted */
	size_t n;
	char last[sizeof(((struct spool_entry *)0)->name)]; /* the last one; "": none */
};

/*
 * Opens or creates @path, and locks it. Returns 0 or a negative errno, -EBUSY if another process
 * has it.
 */
int sent_log_open(struct sent_log *s, const char *path);
void sent_log_close(struct sent_log *s);

bool sent_log_has(const struct sent_log *s, const char *name);

/* Adds @name and writes it to the disk. Returns 0 or a negative errno. */
int sent_log_add(struct sent_log *s, const char *name);

/*
 * Rewrites the file without the names that are not among the @n sorted ones in @spool, once these
 * are most of it.
 */
int sent_log_compact(struct sent_log *s, const struct spool_entry *spool, size_t n);

#endif
