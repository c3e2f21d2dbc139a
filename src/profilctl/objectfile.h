/* objectfile.h - the file of an object, in a profile that was taken or kept earlier */
#ifndef PROFIL_OBJECTFILE_H
#define PROFIL_OBJECTFILE_H

#include "profile.h"

/*
 * Opens the file that @o was when it was profiled: the one that is held open, else the one at its
 * path, if the build id says that it is the same. Returns a descriptor or -ENOENT.
 */
int objectfile_open(const struct object *o);

#endif
