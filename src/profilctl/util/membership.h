/* membership.h - the groups of the caller */
#ifndef PROFIL_PROFILCTL_UTIL_MEMBERSHIP_H
#define PROFIL_PROFILCTL_UTIL_MEMBERSHIP_H

#include <stdbool.h>

/* Says whether the caller is a member of @group. */
bool is_member(const char *group);

#endif
