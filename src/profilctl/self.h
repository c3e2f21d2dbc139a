/* self.h - what we change of our own process while we watch, and what a command must not inherit */
#ifndef PROFIL_SELF_H
#define PROFIL_SELF_H

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

/* As we were started. */
struct self {
	sigset_t mask;
	struct rlimit files;
	int policy;
	struct sched_param param;
};

/*
 * Has @signals, up to a 0, come through a descriptor, which is returned; or a negative errno. A
 * SIGHUP that is ignored, as nohup(1) has it, stays so.
 */
int self_signals(struct self *self, const int *signals);

/* Lets us hold as many files as we may: the soft limit is for programs that select(). */
void self_raise_files(struct self *self);

/*
 * Makes us fit to watch: may hold many files, runs before the programs that it watches, and has
 * SIGINT, SIGTERM and SIGHUP come through a descriptor, which is returned; or a negative errno.
 */
int self_prepare(struct self *self);

/* The watching is over: what is left to do has no hurry. */
void self_relax(const struct self *self);

/* In a child: makes it as we were started. */
void self_restore(const struct self *self);

#endif
