/* membership.c - the groups of the caller, and of the peer of a socket */
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cleanup.h"
#include "membership.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

bool is_member(const char *group)
{
	const struct group *entry = getgrnam(group);
	gid_t groups[NGROUPS_MAX];
	int n = getgroups(NGROUPS_MAX, groups);

	if (!entry)
		return false;
	for (int i = 0; i < n; i++) {
		if (groups[i] == entry->gr_gid)
			return true;
	}
	return getegid() == entry->gr_gid;
}

bool peer_is_member(int sock, gid_t group)
{
	socklen_t bytes = 0;
	__cleanup(freep) gid_t *groups = NULL;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, NULL, &bytes) == 0 || errno != ERANGE)
		return false;
	groups = malloc(bytes);
	if (!groups || getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes) < 0)
		return false;
	for (size_t i = 0; i < bytes / sizeof(*groups); i++) {
		if (groups[i] == group)
			return true;
	}
	return false;
}
