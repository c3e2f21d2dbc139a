/* access.c - readers' permission, and the limits of connections per user */
#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "access.h"
#include "answers/statistics.h"
#include "base/membership.h"

void access_init(struct access *a, const struct options *o)
{
	const struct group *g = getgrnam(o->group);

	*a = (struct access){ .group = g ? g->gr_gid : (gid_t)-1,
			      .user_connections = o->user_connections };
}

int access_identify(struct reader *r, const struct access *a, int fd, bool is_tcp)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	*r = (struct reader){ .uid = TCP_USER, .may_read = true };
	if (is_tcp)
		return 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	r->uid = cred.uid;
	r->may_read =
		!cred.uid || cred.uid == geteuid() ||
		(a->group != (gid_t)-1 && (cred.gid == a->group || peer_is_member(fd, a->group)));
	return 0;
}

static struct access_user *find(struct access *a, uid_t uid)
{
	for (size_t i = 0; i < a->nusers; i++) {
		if (a->user[i].uid == uid)
			return &a->user[i];
	}
	return NULL;
}

static bool is_too_many(const struct access *a, const struct reader *r, unsigned int has)
{
	if (!r->may_read)
		return has >= STRANGER_CONNECTIONS || a->strangers >= STRANGERS_MAX;
	return has >= a->user_connections ||
	       a->connections >= CONNECTIONS_MAX - (r->uid ? CONNECTIONS_ROOT : 0);
}

int access_enter(struct access *a, const struct reader *r)
{
	struct access_user *u = find(a, r->uid);

	if (a->connections >= CONNECTIONS_MAX || is_too_many(a, r, u ? u->connections : 0))
		return -EDQUOT;
	if (!u) {
		u = &a->user[a->nusers++];
		*u = (struct access_user){ .uid = r->uid };
	}
	u->connections++;
	statistics_connections(++a->connections);
	a->strangers += !r->may_read;
	return 0;
}

void access_leave(struct access *a, const struct reader *r)
{
	struct access_user *u = find(a, r->uid);

	assert(u);
	statistics_connections(--a->connections);
	a->strangers -= !r->may_read;
	if (!--u->connections)
		*u = a->user[--a->nusers];
}
