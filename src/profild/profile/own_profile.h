/* own_profile.h - a process's own profile, started by profil() and its relatives */
#ifndef PROFIL_PROFILD_PROFILE_OWN_PROFILE_H
#define PROFIL_PROFILD_PROFILE_OWN_PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/proto.h"
#include "profild/daemon.h"
#include "profild/quota/quota.h"
#include "profild/worker/lane.h"
#include "target.h"

/*
 * A profile writes to its process's memory, which only a worker accesses (lane.h). So it has
 * states, and requests are answered asynchronously:
 *
 *	STARTING   the kernel counts; a worker verifies that the memory is the process's. Or a fork
 *		   child waits for counters
 *	OPENING	   after a restart, a fork or a change of leader: a worker opens the memory
 *	ON
 *	GIVEN_UP   its worker exceeded the time limit: nothing is written any more, all is lost
 *	OVER	   ended by a fault, a saturated counter or a cleared cookie: nothing is written any
 *		   more. It remains while unbound fork children may inherit it
 *	ENDING	   stopped in the kernel; the last counts are being written to the buffer
 *	ENDED	   on no list; freed with the last reference of a task or batch
 *
 * In STARTING, OPENING, OVER and GIVEN_UP counts stay in the kernel's maps.
 */
enum own_profile_state {
	OWN_PROFILE_STARTING,
	OWN_PROFILE_OPENING,
	OWN_PROFILE_ON,
	OWN_PROFILE_GIVEN_UP,
	OWN_PROFILE_OVER,
	OWN_PROFILE_ENDING,
	OWN_PROFILE_ENDED,
};

struct own_profile;
struct writer;
enum writer_outcome;

struct own_profile {
	struct own_profile *next;
	struct profild *daemon;
	struct user *user;
	struct charge charge;
	uint64_t id;	   /* differs from all others; changes when the memory is opened again */
	unsigned int refs; /* of the daemon's list, tasks, batches, callers */
	enum own_profile_state state;
	pid_t tgid; /* the leader; 0: it has ended, but unbound children are left */
	uint64_t period_ns;
	struct target *target; /* NULL: none yet, or left to the next daemon */
	uint32_t flags;	       /* enum profil_start_flags */
	uint32_t width;
	uint32_t cap;
	bool probe; /* check the cookie even if there is nothing to write */
	struct remote memory;
	struct task task;     /* which opens or verifies it */
	uint64_t cookie_addr; /* of the cookie, which fork children inherit */
	uint8_t cookie[PROFIL_COOKIE_BYTES];
	uint64_t image; /* identifies the address space, a fork's too: see memory_image() */
	uint64_t *pcs;	/* to be stored (PROFIL_START_PCS) */
	uint32_t npcs;

	/* Of a fork child that waits for counters: see fork_child.c. */
	struct own_profile *parent; /* in whose target it still is; NULL: it does not wait */
	struct own_profile *next_unborn;
	uint32_t generation;

	struct own_profile *next_dirty; /* see own_profile_mark(); the list holds a reference */
	bool dirty;
	uint64_t settle_until_ns; /* ENDING: until then samples in flight may arrive */

	/*
	 * Passes over its counters have numbers. All that it has counted so far is in the buffer,
	 * or lost, when a pass that begins from now on (@pass + 1) is served.
	 */
	uint64_t pass;	 /* the latest that has begun */
	uint64_t served; /* the latest whose counts are written, or lost with their worker */
	uint64_t asked;	 /* the latest that is waited for */

	/* The writer's: see buffer_writer.c. */
	struct writer *writer;
	void (*on_outcome)(struct own_profile *own, enum writer_outcome outcome, pid_t heir);
	void (*on_free)(struct own_profile *own); /* set by the writer */
	struct own_profile *next_queued;	  /* each of these lists holds a reference */
	struct own_profile *next_written;
	bool queued;
	bool writing;
	bool again; /* it has more counts than fit into the batch */
};

/* @adopt: a profile that exists in the kernel already, so the user's limit does not apply. */
int own_profile_new(struct own_profile **out, struct profild *d, pid_t tgid, struct user *user,
		    bool adopt);
void own_profile_renew_id(struct own_profile *own);
void own_profile_link(struct own_profile *own);
struct own_profile *own_profile_ref(struct own_profile *own);
void own_profile_unref(struct own_profile *own);
static inline void own_profile_unrefp(struct own_profile **own)
{
	if (*own)
		own_profile_unref(*own);
}

/*
 * Stops the profile in the kernel and removes it from the daemon. Counts that have not been written
 * to the buffer are lost. Other references may keep the struct.
 */
void own_profile_end(struct own_profile *own);

/* Removes it from the daemon only: the kernel continues to count, for the next daemon. */
void own_profile_forget(struct own_profile *own);

/* Stops it in the kernel only. */
void own_profile_stop(struct own_profile *own);

/* All its samples so far. */
void own_profile_samples(const struct own_profile *own, struct samples *out);

/* Fills in what the next daemon needs to know of @own, except the sampler's numbers. */
void own_profile_owner(const struct own_profile *own, struct profil_owner *out);

/* Fills in own->task for a request about its memory. */
void own_profile_task(struct own_profile *own, enum work_kind kind, task_done *done, void *arg);

/* @own has changed: has own_lifecycle.c examine it and all requests, from the event loop. */
void own_profile_mark(struct own_profile *own);

/* --- own_lifecycle.c -------------------------------------------------------------------------- */

/* What a START asks for, and the process that sends it. */
struct own_profile_params {
	pid_t tgid;
	bool replaces; /* it has a profile */
	struct user *user;
	const uint8_t *cookie;
	struct remote *memory; /* of that process; own_profile_start() takes ownership */
	uint64_t lender; /* own_profile_lender() when the process got @cookie: @memory is to be a
			  * copy of that profile's. 0: it is open */
	uint64_t cookie_addr;
	uint32_t flags;
	uint32_t width;
	uint32_t cap;
	const struct profil_msg_region *region;
	uint32_t nregions;
};

/* What a request waits for. */
enum own_request_phase {
	OWN_REQUEST_RESERVE, /* START: the sampler reserves counters and a clock */
	OWN_REQUEST_VERIFY,  /* START: a worker verifies the memory */
	OWN_REQUEST_LEAVE,   /* START: the last counts of the old profile are being written */
	OWN_REQUEST_PASS,    /* START, STOP, SYNC: the counts so far are being written */
};

/*
 * A START, STOP or SYNC under way, a member of its client. own_profile_start() and
 * own_profile_ask() fill in all but @done and @arg.
 */
struct own_request {
	struct own_request *next;
	enum own_request_phase phase;
	struct own_profile *own;
	struct own_profile *old; /* START: the profile that @own replaces; NULL: none */
	uint32_t generation;	 /* of the process in @old */
	uint64_t lender;
	uint64_t pass; /* of @old or @own, that is waited for */
	int err;       /* of RESERVE and VERIFY; -EINPROGRESS: no answer yet */
	/* Called once, from the event loop, at the end. @own is NULL after an error. */
	void (*done)(void *arg, int err, const struct own_profile *own);
	void *arg;
};

/* Sets up the event source that examines what has changed. own_profiles_close() undoes it. */
int own_profiles_open(struct profild *d);
void own_profiles_close(struct profild *d);

/*
 * Starts the profile that @p asks for. It replaces the one that the process has; if it fails, that
 * one continues. Returns an immediate error, or 0: then @r->done is called, with -EPERM if the
 * cookie is not in the process's memory. -ESTALE: the process no longer has the profile @p->lender.
 */
int own_profile_start(struct own_request *r, struct profild *d, const struct own_profile_params *p);

/*
 * A STOP of process @leaves, or with 0 a SYNC: @r->done is called when all that @own has counted so
 * far is in the buffer, or lost.
 */
void own_profile_ask(struct own_request *r, struct own_profile *own, pid_t leaves);

/*
 * Sets *@out to the profile that @tgid is in; NULL: none. *@unbound: it is the parent's profile,
 * since @tgid has forked and had no sample yet. -EBUSY: a START of the process is under way.
 */
int own_profile_find(struct own_profile **out, struct profild *d, pid_t tgid, bool *unbound,
		     uint32_t *generation);

/*
 * The id of @tgid's profile if the worker of @lane has its memory open: a cookie that is given to
 * the process now was in no image then. 0: none.
 */
uint64_t own_profile_lender(struct profild *d, pid_t tgid, const struct lane *lane);

/* Removes @tgid from the profile, which ends with its last process. Returns the pass to wait for.
 */
uint64_t own_profile_leave(struct own_profile *own, pid_t tgid);

/* Stops it for all its processes, and ends it when the last counts are in the buffer. */
void own_profile_finish(struct own_profile *own);

/* True if no profile has a pass that is waited for. */
bool own_profiles_served(const struct profild *d);

/* Counts a sample of @tgid that arrived as a pc. Gives an unbound child a profile of its own. */
void own_profile_pc(struct own_profile *own, pid_t tgid, uint32_t generation, uint64_t pc);

/* A fork child that waited for counters ends: its samples so far are its parent's, lost. */
void own_profile_unborn_end(struct own_profile *own);

/* Makes a profile for target @t of an earlier daemon, which the kernel has continued to count. */
int own_profile_recover(struct profild *d, struct target *t, const struct profil_owner *owner);

/* Ends it if all processes of its target have ended. */
void own_profile_check(struct own_profile *own);

/* Enters OWN_PROFILE_OVER, OWN_PROFILE_GIVEN_UP: nothing is written any more. */
void own_profile_over(struct own_profile *own);
void own_profile_give_up(struct own_profile *own);

/* The outcome of a batch. @heir: the process through which the memory is to be opened again. */
void own_profile_outcome(struct own_profile *own, enum writer_outcome outcome, pid_t heir);

/* --- own_memory.c ----------------------------------------------------------------------------- */

/* Gives @own a slot of its user's lane, in which nothing is open yet. */
int own_profile_give_memory(struct own_profile *own);

/* Makes @tgid, which shares the memory, the leader, and has a worker open the memory through it. */
void own_profile_reopen(struct own_profile *own, pid_t tgid);

/* The worker of @u has ended, so its open memories are lost; @late: it exceeded the time limit. */
void own_profiles_lost(struct profild *d, const struct user *u, bool late);

#endif
