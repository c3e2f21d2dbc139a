/* install_path.h - files that were built or installed together with this program */
#ifndef PROFIL_PROFILCTL_UTIL_INSTALL_PATH_H
#define PROFIL_PROFILCTL_UTIL_INSTALL_PATH_H

#include <limits.h>

/* Finds @name, relative to the directory of this program's file. Returns 0 or -ENOENT. */
int install_path(char out[PATH_MAX], const char *name);

#endif
