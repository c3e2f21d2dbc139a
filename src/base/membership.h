/* membership.h - the groups of the caller */
#ifndef PROFIL_BASE_MEMBERSHIP_H
#define PROFIL_BASE_MEMBERSHIP_H

#include <stdbool.h>

/* Says whether the caller is a member of @group. */
bool is_member(const char *group);

#endif
