/* jobs.h - threads for system calls that block */
#ifndef PROFIL_PROFILD_JOBS_H
#define PROFIL_PROFILD_JOBS_H

#include <stdbool.h>
#include <systemd/sd-event.h>

/*
 * A change to a map of maps waits for an RCU grace period, 5 to 16 ms, and a large map takes 50 ms
 * to create, which the main thread must not do. The threads begin jobs in order; then done() is
 * called from the event loop. The caller owns the job and keeps it until then. Between submit and
 * done only run() may access it.
 */
struct jobs;

struct job {
	struct job *next;
	void (*run)(struct job *job);
	void (*done)(struct job *job);
};

int jobs_open(struct jobs **out, sd_event *event, unsigned int threads);

/* Waits for the jobs that are running. Drops all others; no done() is called any more. */
struct jobs *jobs_close(struct jobs *j);

void jobs_submit(struct jobs *j, struct job *job);

/* Calls done() for the jobs that have been done, with @wait when all have been done. */
void jobs_finish(struct jobs *j, bool wait);

#endif
