/* jobs.h - threads for system calls that block */
#ifndef PROFIL_BASE_JOBS_H
#define PROFIL_BASE_JOBS_H

#include <stdbool.h>
#include <systemd/sd-event.h>

/*
 * In profild a change to a map of maps waits for an RCU grace period, 5 to 16 ms, and a large map
 * takes 50 ms to create; in profil-http the files of a stranger can take any time. The threads
 * begin jobs in order; then done() is called from the event loop. The caller owns the job and keeps
 * it until then. Between submit and done only run() may access it.
 */
struct jobs;

struct job {
	struct job *next;
	void (*run)(struct job *job);
	void (*done)(struct job *job);
};

/*
 * The C library keeps the stacks of ended threads, of up to 40 MiB in all. It unmaps the others,
 * and aborts where it cannot: where threads end, five stacks of the usual size are too many.
 */
#define JOBS_STACK (1u << 20)
#define JOBS_STACK_LARGE (8u << 20)

/* Return 0 or a negative errno. */
int jobs_open_with(struct jobs **out, sd_event *event, unsigned int threads, size_t stack);
static inline int jobs_open(struct jobs **out, sd_event *event, unsigned int threads)
{
	return jobs_open_with(out, event, threads, JOBS_STACK);
}

/* Waits for the jobs that are running. Drops all others; no done() is called any more. */
struct jobs *jobs_close(struct jobs *j);

void jobs_submit(struct jobs *j, struct job *job);

/* Calls done() for the jobs that have been done, with @wait when all have been done. */
void jobs_finish(struct jobs *j, bool wait);

#endif
