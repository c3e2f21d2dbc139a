/* watch.h - what is watched, from the daemon that is found to the report that is written */
#ifndef PROFIL_WATCH_H
#define PROFIL_WATCH_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "daemon.h"
#include "newcomers.h"
#include "options.h"
#include "profile.h"
#include "self.h"
#include "session.h"
#include "slices.h"

struct watch {
	const struct options *options;
	struct private_daemon *daemon;
	struct reader *reader; /* that the daemon was found with, until a session has it */
	struct session *sessions;
	size_t nsessions;
	size_t nended;		      /* of them */
	struct profil_msg_reply past; /* the totals of those that were put away */
	struct newcomers *newcomers;  /* NULL: nobody comes in later */
	pid_t *left_out;	      /* there was no room for them */
	size_t nleft_out;
	struct profile *profile;
	struct slices slices; /* if the options ask for them */
	FILE *out;
	int signals;
	int epoll;    /* of all that is waited for */
	bool expired; /* ended because the time was up */
	bool broken;  /* the daemon went away */
	struct self self;
};

/*
 * Opens the output, finds the daemon, and takes SIGINT, SIGTERM and SIGHUP from now on. This and
 * the others return an enum ctl_status, after saying what is wrong. watch_fini() after all of them.
 */
int watch_init(struct watch *w, const struct options *o);

/*
 * Attaches to @pid as well, with what the options ask for. What is not followed through an exec is
 * known to live a while: it is counted in the kernel at once.
 */
int watch_attach(struct watch *w, pid_t pid, bool follow_exec);

/* Attaches to all that are there, through execs: what comes later is a child of one of them. */
int watch_everybody(struct watch *w);

/*
 * Attaches to all that the options select, now and whenever another one comes. That there is none
 * yet is no error, that none of them lets us is one.
 */
int watch_select(struct watch *w);

/*
 * Waits until all that is watched has gone, and none can come, the time is up, or a signal says so.
 */
int watch_run(struct watch *w);

/*
 * Waits likewise until @until_ns of now_ns(), or until there is something to read where
 * watch_input() says. Returns 1 where it may go on, 0 at the end, or a negative errno.
 */
int watch_wait(struct watch *w, __u64 until_ns);

/* Has watch_wait() look at @fd as well. Returns 0 or a negative errno. */
int watch_input(struct watch *w, int fd);

/* Adds all that has been counted so far to @p, whose objects are those of the watch's profile. */
int watch_snapshot(const struct watch *w, struct profile *p);

/* The ticks so far that came one by one and fell nowhere. */
__u64 watch_unmatched(const struct watch *w);

/* Ends the slice that is under way. Returns 0 or -ENOMEM. */
int watch_slice(struct watch *w);

/* Ends the counting, and makes a report in memory of it, and of nothing that came later. */
int watch_end(struct watch *w);

/* Says whether processes have been left out: CTL_PARTIAL where some have. */
int watch_missing(const struct watch *w);

/* Ends it, and writes the report. CTL_PARTIAL where some of it is missing. */
int watch_finish(struct watch *w);

void watch_fini(struct watch *w);

#endif
