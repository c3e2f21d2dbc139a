/* session.h - one process that is watched: a connection of its own, and what follows it */
#ifndef PROFIL_SESSION_H
#define PROFIL_SESSION_H

#include <stdbool.h>
#include <sys/types.h>

#include "follow.h"
#include "profile.h"
#include "reader.h"

struct session {
	pid_t pid;
	int pidfd;
	struct reader *reader;
	struct follow *follow;
	bool inherits; /* so the children that it forks are in here, too */
	bool ended;
	struct profil_msg_reply totals; /* as of its end, or as last asked for */
};

/*
 * Attaches to @pid with PROFIL_ATTACH_ @flags, to add to @p, which must outlive it. Takes over @r,
 * also when it fails. Returns 0 or a negative errno, -EAGAIN where the daemon has no room.
 */
int session_open(struct session *s, struct reader *r, struct profile *p, pid_t pid, __u64 period_ns,
		 __u32 flags);

/* Takes in what has come. Returns 0, or a negative errno where it cannot go on. */
int session_step(struct session *s, bool readable, bool gone);

/* Has the daemon count no more. -ENODATA where it has gone: what we have seen is all there is. */
int session_detach(struct session *s);

void session_close(struct session *s);

#endif
