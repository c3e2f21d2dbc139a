/* membership.h - the groups of the caller, and of the peer of a socket */
#ifndef PROFIL_BASE_MEMBERSHIP_H
#define PROFIL_BASE_MEMBERSHIP_H

#include <stdbool.h>
#include <sys/types.h>

/* Says whether the caller is a member of @group. */
bool is_member(const char *group);

/* Says whether the peer of the Unix socket @sock had the supplementary @group when it connected. */
bool peer_is_member(int sock, gid_t group);

#endif
