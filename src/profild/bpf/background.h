/* background.h - a thread for system calls that block */
#ifndef PROFIL_PROFILD_BPF_BACKGROUND_H
#define PROFIL_PROFILD_BPF_BACKGROUND_H

#include <systemd/sd-event.h>

/*
 * A change to a map of maps waits for an RCU grace period, 5 to 16 ms, which the main thread must
 * not do. The thread runs jobs in order; then done() is called from the event loop. The caller owns
 * the job and keeps it until then. Between submit and done only run() may access it.
 */
struct background;

struct job {
	struct job *next;
	void (*run)(struct job *job);
	void (*done)(struct job *job);
};

int background_open(struct background **out, sd_event *event);

/* Waits for the running job. Drops all others; no done() is called any more. */
struct background *background_close(struct background *b);

void background_submit(struct background *b, struct job *job);

#endif
