/* load.h - reads a profile from a file, or says what else the file is */
#ifndef PROFIL_PROFILCTL_INPUT_LOAD_H
#define PROFIL_PROFILCTL_INPUT_LOAD_H

#include "profile/profile.h"

/* @path "-" is standard input. Prints a message on failure and returns an enum ctl_status. */
int load_profile(struct profile **out, const char *path);

#endif
