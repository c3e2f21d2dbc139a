/* daemon_call.h - requests to the daemon, and the process's own state of its profile */
#ifndef PROFIL_LIBPROFIL_DAEMON_CALL_H
#define PROFIL_LIBPROFIL_DAEMON_CALL_H

#include "core/proto.h"
#include "dialect.h"

/* The kind of call that has started the profile, for dialects that ask. A fork child inherits it.
 */
enum request_mode {
	REQUEST_OFF,
	REQUEST_ON,
	REQUEST_AIX_BUFFER,
	REQUEST_AIX_ARRAY,
	REQUEST_DARWIN,
	REQUEST_PCSAMPLE,
};

/* All of these are called between call_enter() and call_leave(). */
enum request_mode request_mode(void);

/*
 * Replaces the profile by the one that @m describes (its flags, width, cap, nregions and region[];
 * the rest is filled in here). Returns 0 and the daemon's @reply, or a negative errno: -ENOSYS
 * without a daemon, -ETIMEDOUT, -ECONNRESET, or the daemon's; the profile before stays on then.
 */
int request_start(struct profil_msg_start *m, enum request_mode mode,
		  struct profil_msg_reply *reply);

/* Like request_start(), but keeps the mode, and fails with -ESRCH if no profile is on. */
int request_extend(struct profil_msg_start *m, struct profil_msg_reply *reply);

/*
 * Starts one histogram at @buf, or, with a span of 0, a profile that never counts. @reply may be
 * NULL.
 */
int request_start_one(const struct dialect *d, const struct profil_xform *x, const void *buf,
		      enum request_mode mode, struct profil_msg_reply *reply);

/*
 * Ends the profile, if one is on. The counts so far are in the buffer if the daemon can be reached;
 * nothing is written to it afterwards in any case. @reply is all zeros without a daemon. Returns 0,
 * or -ETIMEDOUT if a write in progress has not ended in time; the mode is OFF even then.
 */
int request_stop(struct profil_msg_reply *reply);

/* Brings the buffers up to date; -ENOSYS without a daemon. */
int request_sync(struct profil_msg_reply *reply);

/* Gets the period of the daemon's rate. */
int request_period(__u64 *period_ns);

/* request_sync() with a shorter limit and without a result. */
void request_sync_before_fork(void);

#endif
