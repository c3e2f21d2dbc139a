/* watch.h - one session, from the daemon that is found to the report that is written */
#ifndef PROFIL_WATCH_H
#define PROFIL_WATCH_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "daemon.h"
#include "follow.h"
#include "options.h"
#include "profile.h"
#include "reader.h"
#include "self.h"

struct watch {
	const struct options *options;
	struct private_daemon *daemon;
	struct reader *reader;
	struct follow *follow;
	struct profile *profile;
	FILE *out;
	int pidfd; /* of the target */
	int maps;  /* its /proc/PID/maps: who may open that may profile it */
	int signals;
	bool follow_exec;
	bool expired; /* ended because the time was up */
	bool broken;  /* the daemon went away */
	struct self self;
};

/*
 * Opens the output, finds the daemon, and takes SIGINT, SIGTERM and SIGHUP from now on. This and
 * the others return an enum ctl_status, after saying what is wrong. watch_fini() after all of them.
 */
int watch_init(struct watch *w, const struct options *o);

/* Attaches to @pid with what the options ask for; its maps and pidfd are opened here. */
int watch_attach(struct watch *w, pid_t pid, bool follow_exec);

/* Waits until the target has gone, the time is up, or a signal says so. */
int watch_run(struct watch *w);

/* Ends the session and writes the report. CTL_PARTIAL where much of it is missing. */
int watch_finish(struct watch *w);

void watch_fini(struct watch *w);

#endif
