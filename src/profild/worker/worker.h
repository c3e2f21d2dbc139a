/* worker.h - worker processes, from the daemon's side */
#ifndef PROFIL_PROFILD_WORKER_WORKER_H
#define PROFIL_PROFILD_WORKER_WORKER_H

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "profild/quota/quota.h"
#include "work.h"

struct worker;

/* Starts the process that forks the workers: see spawner.h. The caller ignores SIGCHLD. */
int workers_open(sd_event *event);

/*
 * Has a worker forked for users of @account (see struct birth), which ends with worker_close() or
 * with the daemon. Does not block.
 */
int worker_new(struct worker **out, uid_t account, sd_event *event);

/* @answered is called for each answer, and with NULL at the end of the process; may be NULL. */
void worker_serve(struct worker *w, void (*answered)(void *arg, const struct work_answer *a),
		  void *arg);

/* Sends a request. Does not block: -EAGAIN if the queue is full. The caller keeps the fds. */
int worker_send(struct worker *w, const struct work *work, const int *fds, unsigned int nfds);

/* False if the event loop has seen the end of the process. */
bool worker_is_alive(const struct worker *w);

/* True once the process exists: what is sent to it is in no other's hands. */
bool worker_is_born(const struct worker *w);

union work_area *worker_area(struct worker *w);

/* The worker ends when it has done all requests. */
void worker_close(struct worker *w);

/* Kills it, and charges it to @u as RES_OPERATIONS until it has ended, which may be never. */
void worker_give_up(struct worker *w, struct user *u);

/* Undoes workers_open() at the daemon's end: frees all. The workers end when they have done all
 * requests. */
void workers_forget(void);

/* @fn is called whenever a worker that was given up has ended. */
void workers_on_end(void (*fn)(void *arg), void *arg);

#endif
