/* access.h - readers' permission, and the limits of connections per user */
#ifndef PROFIL_PROFIL_HTTP_ACCESS_H
#define PROFIL_PROFIL_HTTP_ACCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "options.h"

/* Limits of all connections, and of connections of users without permission: of all and of each. */
#define CONNECTIONS_MAX 512
#define CONNECTIONS_ROOT 32 /* of these reserved for root */
#define STRANGERS_MAX 64
#define STRANGER_CONNECTIONS 4

/* All readers over TCP count as one user, since TCP has no credentials. */
#define TCP_USER ((uid_t)-1)

struct access_user {
	uid_t uid;
	unsigned int connections;
};

struct access {
	gid_t group; /* -1: none */
	unsigned int user_connections;
	unsigned int connections;
	unsigned int strangers; /* of them */
	struct access_user user[CONNECTIONS_MAX];
	size_t nusers;
};

struct reader {
	uid_t uid;
	bool may_read;
};

void access_init(struct access *a, const struct options *o);

/* Identifies the peer of @fd by its socket credentials. Returns 0 or a negative errno. */
int access_identify(struct reader *r, const struct access *a, int fd, bool is_tcp);

/*
 * Charges a connection to the user of @r. Returns 0 or -EDQUOT beyond a limit. access_leave()
 * discharges it.
 */
int access_enter(struct access *a, const struct reader *r);
void access_leave(struct access *a, const struct reader *r);

#endif
