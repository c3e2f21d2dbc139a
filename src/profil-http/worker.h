/* worker.h - a thread that runs jobs that can block, one after another */
#ifndef PROFIL_PROFIL_HTTP_WORKER_H
#define PROFIL_PROFIL_HTTP_WORKER_H

#include <systemd/sd-event.h>

struct job {
	void (*run)(struct job *j);  /* called in the worker's thread */
	void (*done)(struct job *j); /* called afterwards in the event loop's thread */
	struct job *next;	     /* used by the worker */
};

struct worker;

/* Returns 0 or a negative errno. */
int worker_start(struct worker **out, sd_event *event, const char *name);

/* Queues @j. The caller keeps ownership; @j must stay valid until done() is called. */
void worker_submit(struct worker *w, struct job *j);

#endif
