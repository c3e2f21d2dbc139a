/* guarded_file.h - opens files that another user's file system may hold up */
#ifndef PROFIL_SYMBOLS_PROC_GUARDED_FILE_H
#define PROFIL_SYMBOLS_PROC_GUARDED_FILE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * A file can be on a file system that another user serves: FUSE, also below an overlay in that
 * user's mount namespace, or an image on a loop device. A server that stops answering holds each
 * system call there, and page faults, in a sleep that not even SIGKILL ends. So this is the one
 * place where files that other processes or profiles name are opened:
 *
 *   - a file is opened here if that takes no look-up that may wait, and it is on a local file
 * system of this mount namespace (or on the same superblock in another one);
 *   - all others are opened by a helper process. It passes the descriptor of a local file, and a
 *     copy in memory of any other. If it does not answer in time it is left to itself.
 *
 * Network file systems of this mount namespace are root's choice: their files are not copied,
 * unless guarded_files_copy_network() was called.
 */

/*
 * Opens the regular file @path as regular_file_open() does. @st, if not NULL: the file's, also if
 * the descriptor is a copy. Returns a descriptor or a negative errno: -ETIMEDOUT if its file system
 * does not answer, -EFBIG if it is too large to be copied.
 */
int guarded_file_open(const char *path, struct stat *st);

/*
 * The same for @path below the directory @root, from which no symbolic link leads out. The last
 * part of @path must not be one.
 */
int guarded_file_open_below(const char *root, const char *path, struct stat *st);

/* From now on files of network file systems are copied as well: for programs that must not hang. */
void guarded_files_copy_network(void);

/* True if @pid is a helper process: a child of this one that ends with it. */
bool guarded_file_is_helper(pid_t pid);

#endif
