/* authorize.c - which rights a client has */
#include "base/membership.h"
#include "authorize.h"

bool authorize_member(const struct profild *d, int sock, const struct ucred *peer)
{
	if (d->operators == (gid_t)-1)
		return false;
	return peer->gid == d->operators || peer_is_member(sock, d->operators);
}

bool authorize_others(const struct profild *d, const struct peer *peer)
{
	return peer->privileged || authorize_member(d, peer->sock, &peer->cred);
}
