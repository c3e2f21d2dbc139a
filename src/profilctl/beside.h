/* beside.h - files that were built, or installed, together with us */
#ifndef PROFIL_BESIDE_H
#define PROFIL_BESIDE_H

#include <limits.h>

/* Puts the path of @name, relative to the directory of our own file: 0 or -ENOENT. */
int beside(char out[PATH_MAX], const char *name);

#endif
