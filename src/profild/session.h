/* session.h - one profile: of a process that asked for it, or of a reader who watches others */
#ifndef PROFIL_SESSION_H
#define PROFIL_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/proto.h"
#include "memory.h"
#include "profild.h"
#include "target.h"

struct session {
	struct session *next;
	struct profild *daemon;
	struct client *reader; /* whose it is; NULL: the process's own */
	uid_t uid;	       /* who is charged */
	pid_t tgid;	       /* 0: gone, but children of its go on from here */
	uint64_t period_ns;
	struct target *targets;
	bool over;	   /* a fault or a full counter has ended it: session_end() it */
	struct ticks past; /* of targets that have been released */

	/* A process's own. */
	uint32_t flags; /* enum profil_start_flags */
	uint32_t width;
	uint32_t cap;
	struct memory *memory;
	uint64_t cookie_addr; /* where fork children have it too ... */
	uint8_t cookie[PROFIL_COOKIE_BYTES];
	uint64_t image;	   /* ... in what memory_image() says is theirs */
	uint64_t pcs_told; /* of the pcs stored, as of the last reply (PROFIL_START_PCS) */
};

/* What START asks for, and who asks. */
struct session_request {
	pid_t tgid;
	uid_t uid;
	const uint8_t *cookie;
	struct memory **memory; /* of that process; session_start() takes it over */
	uint64_t cookie_addr;
	uint32_t flags;
	uint32_t width;
	uint32_t cap;
	const struct profil_msg_region *region;
	uint32_t nregions;
};

/*
 * Starts the profile that @r asks for, instead of the one that the process has; on failure that one
 * goes on. -EPERM where the cookie is not in the process's memory.
 */
int session_start(struct session **out, struct profild *d, const struct session_request *r);

/*
 * The profile that process r->tgid is in, if it has really put the cookie into its memory; NULL if
 * there is none. It may be in its parent's still, as a newborn.
 */
struct session *session_of(struct profild *d, const struct session_request *r);

/*
 * @tgid is in this profile no more, and the buffer holds all its ticks. Returns whether others are
 * in it still; if not, session_end() is due. session_leave() does both.
 */
bool session_depart(struct session *s, pid_t tgid);
void session_leave(struct session *s, pid_t tgid);

/*
 * Who led to the memory has gone, or is about to: another process that has it leads there from now
 * on. Returns whether there is one. Kernels before 6.11 say nothing of the mappings of a process
 * that has gone, even if others have them still.
 */
bool session_lead(struct session *s);

/* Ends what is to be ended: after everything that may have written to a buffer. */
void session_check(struct session *s);

/*
 * A tick of @tgid, in its life @life, that came as a pc: of a fork child, which thereby gets a
 * profile of its own.
 */
void session_pc(struct session *s, pid_t tgid, uint32_t life, uint64_t pc);

/* Starts a reader's session on @tgid; every tick goes out as a raw pc at first. */
int session_attach(struct session **out, struct profild *d, struct client *reader, uid_t uid,
		   pid_t tgid, uint64_t period_ns, uint32_t attach_flags);

/* Counts @tgid, a process of this session, by these regions, if it is in its life @life still. */
int session_image(struct target **out, struct session *s, pid_t tgid, uint32_t life,
		  const struct profil_msg_region *region, uint32_t n);

/* A session for the target of an earlier daemon, which has counted on meanwhile. */
int session_recover(struct profild *d, struct target *t, const struct profil_owner *owner);

/* What such a daemon needs to know of @s: all but the sampler's numbers. */
void session_owner(const struct session *s, struct profil_owner *out);

/* Counts no more, and the buffers hold all; the session itself stays. */
void session_stop(struct session *s);

/* Stops it and forgets it. */
void session_end(struct session *s);

/* Only forgets it: the kernel counts on, for the next daemon. */
void session_forget(struct session *s);

/* All its ticks so far. */
void session_ticks(const struct session *s, struct ticks *out);
void session_usage(const struct session *s, uint32_t *nregions, uint64_t *nbins);

#endif
