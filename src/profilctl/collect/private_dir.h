/* private_dir.h - the folder of a private daemon's sockets, and stale ones */
#ifndef PROFIL_PROFILCTL_COLLECT_PRIVATE_DIR_H
#define PROFIL_PROFILCTL_COLLECT_PRIVATE_DIR_H

#include <stdbool.h>
#include <stddef.h>

/* Longest path of the folder, with the NUL: the path of a socket in it must fit sockaddr_un. */
#define PRIVATE_DIR_MAX 64

struct private_dir {
	char path[PRIVATE_DIR_MAX]; /* empty: no folder */
	char socket[PRIVATE_DIR_MAX + 16];
	char notify[PRIVATE_DIR_MAX + 16];
	int lock; /* flock()ed by the process that made the folder, until it ends */
};

/*
 * Makes a folder below $TMPDIR or /tmp, after removing stale ones. @served: processes of other
 * users can connect to the socket. Returns 0 or a negative errno.
 */
int private_dir_make(struct private_dir *d, bool served);

/* Removes the folder and the sockets in it. */
void private_dir_remove(struct private_dir *d);

/* The parent of the folders: $TMPDIR, or /tmp if that is too long. */
const char *private_dir_parent(void);

/* Counts this user's stale folders, whose process was killed, and removes them if @remove. */
size_t private_dir_stale(bool remove);

#endif
