/* recorder.h - a recording: connects to a daemon, attaches, waits, writes the report */
#ifndef PROFIL_PROFILCTL_COLLECT_RECORDER_H
#define PROFIL_PROFILCTL_COLLECT_RECORDER_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "command.h"
#include "daemon_spawn.h"
#include "profilctl/options/options.h"
#include "profile/profile.h"
#include "attached_children.h"
#include "quiet_threads.h"
#include "self_setup.h"
#include "table/file_release.h"
#include "table/time_reader.h"
#include "table/unwind_feeder.h"

/* A process whose end the recorder waits for. */
struct watched {
	pid_t pid;
	int pidfd;
	bool added; /* to the attachment */
	bool ended;
	__u64 before_ns; /* CPU time at its addition */
	__u64 cpu_ns;	 /* CPU time since, with the children that it has waited for */
};

struct recorder {
	const struct options *options;
	struct private_daemon *daemon;
	struct client *client;
	struct profil_msg_observe asked;
	struct table_reader reader;
	struct file_release release;
	struct symbolize_cache names; /* of files that were let go */
	struct unwind_feeder feeder;
	struct profile *profile;
	struct attached_children children; /* of the processes of recorder_add() */
	struct quiet_threads quiet;	   /* likewise; empty but for waits */
	struct time_reader slices;	   /* if requested by options */
	struct watched *watched;
	size_t nwatched;
	size_t nended; /* of them */
	FILE *out;
	int signals;
	int epoll;		/* of all descriptors that end a wait */
	bool expired;		/* ended by the time limit */
	bool broken;		/* the daemon ended first */
	struct command command; /* keeper 0: none */
	pid_t *running;		/* what its command has started and ran on at the end */
	size_t nrunning;
	bool machine; /* the table is the machine profile's, which outlives the recorder */
	__u64 began_ns;
	__u64 end_ns;		 /* by the options; 0: none */
	struct unwind_stop stop; /* of the making of unwind tables */
	__u64 next_update_ns;
	__u64 next_cpu_time_ns;
	__u64 fed_since_ns; /* of the first update with call graphs; 0: none yet */
	struct self self;
};

/*
 * Opens the output, connects to a daemon or starts a private one, and redirects SIGINT, SIGTERM and
 * SIGHUP to a signalfd. Functions without other documentation print a message on failure and return
 * an enum ctl_status. recorder_fini() is required after success and failure.
 */
int recorder_init(struct recorder *r, const struct options *o);

/* The same, but never starts a daemon. */
int recorder_init_connected(struct recorder *r, const struct options *o);

/*
 * Asks for a table that the samples of a build fit in: it has thousands of processes, and a place
 * is counted for each of them apart. For recordings, whose table is never replaced as that of top
 * is.
 */
void recorder_room(struct profil_msg_observe *m);

/*
 * Starts the attachment with the scope and event of @m, and otherwise by the options. @default_hz
 * is the rate for CPU time if the options have none; 0: the daemon's default.
 */
int recorder_observe(struct recorder *r, const struct profil_msg_observe *m, __u64 default_hz);

/* Reads the machine profile, which must be on, instead of an attachment's table. */
int recorder_machine(struct recorder *r);

/* Prints that the daemon does not permit the machine profile, and returns a status. */
int recorder_machine_denied(const struct options *o);

/* Prints that the daemon's clock cannot count at the rate of @o, and returns a status. */
int recorder_rate_refused(const struct options *o);

/* Prints why the daemon has refused an attachment with @err, and returns a status. */
int recorder_refused(const struct recorder *r, int err);

/* Prints a note if more than 1 % of the samples of @p were lost, and returns true then. */
bool recorder_tell_lost(const struct profile *p);

/* Asks the daemon to add @w to the attachment. Returns 0 or a negative errno. */
int recorder_attach(struct recorder *r, const struct watched *w);

/* Adds process @pid to the attachment and to the processes whose end recorder_run() waits for. */
int recorder_add(struct recorder *r, pid_t pid);

/* Notes the children of the added processes, which only a later fork adds to the attachment. */
void recorder_note_children(struct recorder *r);

/* Makes recorder_run() wait for the end of @pid, without profiling it. */
int recorder_watch(struct recorder *r, pid_t pid);

/* Opens the feeder with the map @unwind, which stays the caller's, for the open table. */
int recorder_feed(struct recorder *r, int unwind);

/* Says whether a signal has come that ends the recording. */
bool recorder_interrupted(const struct recorder *r);

/* Waits until all watched processes have ended (if there are any), the time limit, or a signal. */
int recorder_run(struct recorder *r);

/*
 * The same, but also returns at @until_ns of now_ns() or when the descriptor of recorder_input() is
 * readable. Returns 1 if the recording continues, 0 if it has ended, or a negative errno.
 */
int recorder_wait(struct recorder *r, __u64 until_ns);

/* Reads the CPU time of the processes of recorder_add() that still run. */
void recorder_note_cpu_time(struct recorder *r);

/* Makes recorder_wait() return when @fd is readable. Returns 0 or a negative errno. */
int recorder_input(struct recorder *r, int fd);

/* Adds all samples so far to @p, by outcome. Returns 0 or -ENOMEM. */
int recorder_snapshot(struct recorder *r, struct profile *p);

/*
 * Says whether recorder_renew() should replace the table: it fills up. That of the machine profile
 * is replaced by the daemon.
 */
bool recorder_must_renew(const struct recorder *r);

/*
 * Continues with an empty table and an empty profile; the caller must hold no references into the
 * old one. Samples between the two tables are not counted. Returns 0 or a negative errno; -ENOENT:
 * the machine profile was turned off.
 */
int recorder_renew(struct recorder *r);

/* When the table's first sample was possible, on the clock of now_ns(). */
__u64 recorder_began_ns(const struct recorder *r);

/* Ends the attachment and completes the profile in memory. */
int recorder_end(struct recorder *r);

/* Reports on stderr what the profile lacks. Returns CTL_PARTIAL if it lacks samples. */
int recorder_missing(const struct recorder *r);

/* Prints a line on stderr: the written file and how the command ended. */
void recorder_tell_written(const struct recorder *r);

/* Ends the attachment and writes the report. Returns CTL_PARTIAL if it lacks samples. */
int recorder_finish(struct recorder *r);

void recorder_fini(struct recorder *r);

#endif
