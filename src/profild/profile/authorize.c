/* authorize.c - which rights a client has */
#include <sys/socket.h>

#include "authorize.h"

bool authorize_member(const struct profild *d, int sock, const struct ucred *peer)
{
	gid_t groups[256];
	socklen_t len = sizeof(groups);

	if (d->operators == (gid_t)-1)
		return false;
	if (peer->gid == d->operators)
		return true;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return false;
	for (size_t i = 0; i < len / sizeof(groups[0]); i++) {
		if (groups[i] == d->operators)
			return true;
	}
	return false;
}

bool authorize_others(const struct profild *d, const struct peer *peer)
{
	return peer->privileged || authorize_member(d, peer->sock, &peer->cred);
}
