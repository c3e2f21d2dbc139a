/* load.h - reads a profile that was kept by -o */
#ifndef PROFIL_LOAD_H
#define PROFIL_LOAD_H

#include "profile.h"

/* Returns an enum ctl_status, after saying what is wrong. */
int load_profile(struct profile **out, const char *path);

#endif
