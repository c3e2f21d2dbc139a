/* graphs.h - the calls and ticks of -pg programs that run, for those that end without writing them
 */
#ifndef PROFIL_GRAPHS_H
#define PROFIL_GRAPHS_H

#include <sys/types.h>

struct held_graph;

struct graphs {
	struct held_graph *first;
	int epoll; /* readable when one of the programs ends */
	int err;   /* the first that kept a profile from being written */
};

/* Takes over @memory, in which process @pid counts from now on. */
void graphs_add(struct graphs *g, pid_t pid, int memory);

/* Process @pid is another program now: what it was before goes, as gmon.out of libc does. */
void graphs_forget(struct graphs *g, pid_t pid);

/*
 * Sees which of them have ended. What they have said is to be heard after this and before
 * graphs_sweep(): their last word may be that they are another program now.
 */
void graphs_check(struct graphs *g);

/* Tells of those that were seen to have ended, after writing gmon.out of who did not. */
void graphs_sweep(struct graphs *g);

/* The same of all that there are; of those that run on, as far as they are. */
void graphs_close(struct graphs *g);

#endif
