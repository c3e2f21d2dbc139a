/* snapshots.h - takes snapshots, which concurrent requests share */
#ifndef PROFIL_PROFIL_HTTP_SNAPSHOTS_H
#define PROFIL_PROFIL_HTTP_SNAPSHOTS_H

#include "profil-http/machine/snapshot.h"
#include "base/jobs.h"

/* A snapshot up to this age is shared. */
#define SNAPSHOT_SHARED_NS 100000000u

struct snapshot_waiter {
	/*
	 * Called with the snapshot, which the waiter has to unref; NULL: failed, for the reason
	 * @why.
	 */
	void (*ready)(struct snapshot_waiter *w, struct snapshot *s, const char *why);
	struct snapshot_waiter *next;
};

struct snapshots;

/* @socket is the daemon's; NULL: the default. Returns 0 or a negative errno. */
int snapshots_new(struct snapshots **out, sd_event *event, const char *socket);

/* Calls w->ready, possibly at once, with a snapshot that is at most SNAPSHOT_SHARED_NS old. */
void snapshots_want(struct snapshots *s, struct snapshot_waiter *w);

#endif
