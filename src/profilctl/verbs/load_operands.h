/* load_operands.h - the profiles that operands name: files, folders, patterns, and times of the
 * spool
 */
#ifndef PROFIL_PROFILCTL_VERBS_LOAD_OPERANDS_H
#define PROFIL_PROFILCTL_VERBS_LOAD_OPERANDS_H

#include "profilctl/options/options.h"
#include "profile/profile.h"

/*
 * Adds up the profiles that the @n operands name: files, folders with the profiles below them,
 * patterns, and spans of time SINCE..UNTIL of the spool. Prints a message on
 * failure and returns an enum ctl_status: CTL_PARTIAL, with a profile, if some are left out.
 */
int load_operands(struct profile **out, const struct options *o, char *const *what, size_t n);

#endif
