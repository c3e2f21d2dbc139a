/* fuse.h - a FUSE file system of one file, whose server answers neither READ nor FLUSH */
#ifndef PROFIL_TEST_HOSTILE_FUSE_H
#define PROFIL_TEST_HOSTILE_FUSE_H

#include <sys/types.h>

/*
 * Mounts the file system in a mount namespace of its own, with a server process, and returns a
 * descriptor of the file, open for reading and writing. Root mounts it as fusermount3 does for user
 * @uid, and is that user afterwards. A user mounts it in a user namespace; the kernel then sends
 * the server no request of users outside of that namespace. Exits by attack_skip() when the machine
 * does not allow the mount.
 */
int fuse_start(uid_t uid);

/* One more descriptor of the file; -1 with errno. */
int fuse_open(void);

/* Kills the server: every request that waits for it fails. */
void fuse_end(void);

#endif
