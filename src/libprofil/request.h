/* request.h - one call to the daemon, and what this process knows of its profile */
#ifndef PROFIL_REQUEST_H
#define PROFIL_REQUEST_H

#include "core/proto.h"
#include "dialect.h"

/* Who turned the profile on, as far as a dialect asks. A fork child has it from its parent. */
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
 * Starts the profile that @m describes (its flags, width, cap, nregions and region[]; the rest is
 * filled in here) instead of the one before. Returns 0 and the daemon's @reply, or a negative
 * errno: -ENOSYS without a daemon, -ETIMEDOUT, or what the daemon says; then what was is still on.
 */
int request_start(struct profil_msg_start *m, enum request_mode mode,
		  struct profil_msg_reply *reply);

/* The same, with the mode as it is, where a profile is on; else -ESRCH. */
int request_extend(struct profil_msg_start *m, struct profil_msg_reply *reply);

/*
 * Starts one histogram at @buf, or, with a span of 0, a profile that never counts. @reply may be
 * NULL.
 */
int request_start_one(const struct dialect *d, const struct profil_xform *x, const void *buf,
		      enum request_mode mode, struct profil_msg_reply *reply);

/* Ends what is on, if anything. Without a daemon, 0 and an empty @reply. */
int request_stop(struct profil_msg_reply *reply);

/* Brings the buffers up to date; -ENOSYS without a daemon. */
int request_sync(struct profil_msg_reply *reply);

/* ... if the daemon is quick about it: a fork does not wait for long. */
void request_sync_before_fork(void);

#endif
