/* gmon_collector.h - writes gmon.out for -pg programs that end without writing it */
#ifndef PROFIL_PROFILCTL_COLLECT_GMON_COLLECTOR_H
#define PROFIL_PROFILCTL_COLLECT_GMON_COLLECTOR_H

#include <stdbool.h>
#include <sys/types.h>

struct held_graph;

struct graphs {
	struct held_graph *first;
	int epoll;	  /* readable when a program ends */
	int err;	  /* the first error that prevented a profile from being written */
	bool own_written; /* a program wrote gmon.out itself */
	unsigned long long most_written; /* most counts of a profile that profilctl wrote */
};

/* Takes ownership of the memfd @memory, in which process @pid counts from now on. */
void graphs_add(struct graphs *g, pid_t pid, int memory);

/* Process @pid has exec'd: drops the counts of its former program, as libc does. */
void graphs_forget(struct graphs *g, pid_t pid);

/*
 * Marks the programs that have ended. The caller then receives pending messages before
 * graphs_sweep(), since the last message of a process can be that it has exec'd.
 */
void graphs_check(struct graphs *g);

/*
 * Writes the profiles that the programs marked by graphs_check() did not write, and reports them. A
 * fork child that counted nothing since the fork gets no profile; one whose profile would replace
 * counts that it did not inherit gets gmon.out.PID.
 */
void graphs_sweep(struct graphs *g);

/* Writes and reports all profiles; programs that still run with their counts so far. */
void graphs_close(struct graphs *g);

#endif
