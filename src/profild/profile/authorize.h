/* authorize.h - which rights a client has */
#ifndef PROFIL_PROFILD_PROFILE_AUTHORIZE_H
#define PROFIL_PROFILD_PROFILE_AUTHORIZE_H

#include <stdbool.h>
#include <sys/socket.h>

#include "profild/daemon.h"

struct peer {
	int sock;
	struct ucred cred;
	bool privileged; /* see process_privileged_as() */
};

/* True if @peer, connected through @sock, is in group profil. */
bool authorize_member(const struct profild *d, int sock, const struct ucred *peer);

/* True if @peer may observe the machine: it is privileged, or a member of group profil. */
bool authorize_others(const struct profild *d, const struct peer *peer);

#endif
