/* lane.h - for each user a queue of tasks and a worker process */
#ifndef PROFIL_PROFILD_WORKER_LANE_H
#define PROFIL_PROFILD_WORKER_LANE_H

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "profild/quota/quota.h"
#include "work.h"

/*
 * The main thread never blocks on anything that a client controls. A page behind /proc/PID/mem may
 * belong to a FUSE or NFS file whose server does not answer. Opening a memory, or asking for its
 * mappings, takes locks that the process can hold. Reading an unknown descriptor, or closing the
 * last copy of one (a socket with SO_LINGER), may block for as long as its owner likes. Workers do
 * all of that.
 *
 * Workers are processes, not threads. A worker that blocks can be killed and replaced; one that
 * SIGKILL does not end (D state) is abandoned. A thread in D state would keep the whole daemon from
 * ending: its listening socket, links and maps would stay, and the service manager could not reap
 * it. A worker process in D state keeps only the memories that it has opened, and no descriptor of
 * the daemon.
 *
 * Each user with tasks or open memories has a lane: a queue of tasks, and one worker that has all
 * of the user's memories open. One task is in flight at a time, so a memory that blocks delays only
 * tasks of the same user. A task that exceeds the time limit ends the worker: the task fails, and
 * the memories are lost, which lanes_open()'s callback reports. Killed workers that have not ended
 * are charged to the user (RES_OPERATIONS). At its limit a user gets no further worker, so their
 * number is bounded.
 *
 * A worker without memories and tasks returns to a small pool of parked workers for the next lane:
 * a hand-off costs one packet and one wake-up each way, and no fork.
 */
struct lanes;
struct lane;

/*
 * @lost is called when the worker of @u has ended, and with it all its open memories; @late: it had
 * exceeded the time limit.
 */
int lanes_open(struct lanes **out, sd_event *event, uint64_t limit_ns,
	       void (*lost)(void *arg, struct user *u, bool late), void *arg);
/* Does not block. No lane may be in use. */
struct lanes *lanes_close(struct lanes *l);

/* True if a task is queued or in flight. */
bool lanes_busy(const struct lanes *l);

/* A reference to the lane of @u, which is created if need be. -ENOMEM. */
int lane_get(struct lane **out, struct lanes *l, struct user *u);
struct lane *lane_ref(struct lane *lane);
struct lane *lane_unref(struct lane *lane); /* takes NULL; returns NULL */

/* A pointer that the layer above may keep in each lane; must be NULL when the lane ends. */
void **lane_own(struct lane *lane);

/*
 * @a->err is the worker's result, or -ETIMEDOUT or -EIO if the worker has ended without an answer,
 * -EAGAIN if there is no worker. @area is the worker's; NULL without an answer. Never called from
 * inside lane_submit().
 */
typedef void task_done(void *arg, const struct work_answer *a, union work_area *area);

/* Fills in the area before the task is sent. Returns false if there is nothing to do. */
typedef bool task_prepare(void *arg, struct work *work, union work_area *area);

/* A request to a worker: a member of its owner, which keeps it until @done is called. */
struct task {
	struct task *next; /* in its lane's queue */
	struct work work;
	task_prepare *prepare; /* may be NULL */
	task_done *done;
	void *arg;
	/*
	 * A client's socket from which the worker receives the next message; it keeps that
	 * message's descriptors as work.id. -1 if the connection has been closed. NULL: none.
	 *
	 * Descriptors of clients never enter this process, because each close of a FUSE file, even
	 * of a copy, blocks until its server has answered a FLUSH.
	 */
	const int *sock;
};

/* Queues @t. */
void lane_submit(struct lane *lane, struct task *t);

/* A new id for work->id. */
uint64_t lane_new_id(struct lane *lane);

/* A memory that the worker has open, or will open. All zero: none. */
struct remote {
	struct lane *lane;
	uint32_t slot;
	uint32_t generation; /* of the lane's worker: if that has changed, the memory is lost */
	uint64_t image;
};

/* A slot without a memory, for WORK_OPEN and WORK_ADOPT. */
int remote_init(struct remote *r, struct lane *lane);
void remote_fini(struct remote *r);
void remote_move(struct remote *to, struct remote *from);
bool remote_lost(const struct remote *r);

#endif
