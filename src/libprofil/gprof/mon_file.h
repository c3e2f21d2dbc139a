/* mon_file.h - the file that monitor() writes */
#ifndef PROFIL_LIBPROFIL_GPROF_MON_FILE_H
#define PROFIL_LIBPROFIL_GPROF_MON_FILE_H

#include <stdbool.h>

/*
 * Creates or truncates the file @path. In a @set_id program another user chooses the directory:
 * only a regular file that has one link, and is no symbolic link, is truncated. Returns a
 * descriptor or a negative errno.
 */
int mon_file_create(const char *path, bool set_id);

#endif
