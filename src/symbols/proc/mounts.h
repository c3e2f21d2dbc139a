/* mounts.h - which file systems a process sees, without asking those file systems */
#ifndef PROFIL_SYMBOLS_PROC_MOUNTS_H
#define PROFIL_SYMBOLS_PROC_MOUNTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * Says whether a server may have to answer before the absolute @path can be opened: it lies on a
 * FUSE or network file system. A server that does not answer blocks every system call there,
 * without a time limit. @mountinfo is that of proc(5). @is_own: it is this process's; then a root
 * file system with a server does not count, because this program was read from it.
 */
bool mounts_has_server(FILE *mountinfo, const char *path, bool is_own);

/* The same as process @pid ("self", or digits) sees @path; true if its mounts cannot be read. */
bool mounts_has_server_for(const char *pid, const char *path);

/*
 * Trusts the mounts that process @pid sees as much as those of this process: for a program in a
 * container that has the host's /proc. To be called before there are other threads.
 */
void mounts_trust(pid_t pid);

/* That process as "4711"; NULL: there is none. */
const char *mounts_trusted(void);

/* What serves the reads of a file. */
enum mount_kind {
	MOUNT_LOCAL,   /* this machine's kernel */
	MOUNT_NETWORK, /* a server that root has chosen */
	MOUNT_FOREIGN, /* perhaps a process of any user, which may never answer */
};

/*
 * The kind of mount @id. @own: the text of this process's mountinfo; @other: of another process,
 * which sees the mount; "": none. A mount that is not in @own is of the kind of the one there with
 * the same superblock, else FOREIGN: an overlay in another mount namespace has the rights of the
 * user of the mount, and may be on FUSE. Changes neither text, allocates nothing.
 */
enum mount_kind mounts_kind(const char *own, const char *other, unsigned int id);

/* The kernel's encoding of a device number. */
static inline __u32 mounts_kernel_dev(unsigned int major, unsigned int minor)
{
	return major << 20 | minor;
}

/* What the kernel knows a file by. */
struct mounts_file {
	__u64 ino;
	__u32 dev; /* stat() shows another one on overlayfs and btrfs */
};

/* Returns 0 or a negative errno. */
int mounts_file(struct mounts_file *out, const char *path);

struct stat;

/* The kernel's device number of file @fd; 0 on file systems where stat() shows another one. */
__u32 mounts_file_dev(int fd, const struct stat *st);

#endif
