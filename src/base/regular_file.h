/* regular_file.h - opens files whose paths come from other users */
#ifndef PROFIL_BASE_REGULAR_FILE_H
#define PROFIL_BASE_REGULAR_FILE_H

#define REGULAR_FILE_BYTES_MAX (4ll << 30)

/*
 * A profiled process, an ELF file and a profile can name any path, also through a symbolic link. To
 * open a device can start it (/dev/watchdog), and to open a pipe wakes its writer. So the file's
 * type is checked before it is opened for reading.
 *
 * Opens the regular file @path. Returns a descriptor or a negative errno: -EINVAL if it is not a
 * regular file, -EFBIG if it has more than REGULAR_FILE_BYTES_MAX bytes. A sparse file of any size
 * costs its owner nothing, but its readers time and memory.
 */
int regular_file_open(const char *path);

/* The same for the file of @fd, which was opened with O_PATH and stays the caller's. */
int regular_file_reopen(int fd);

#endif
