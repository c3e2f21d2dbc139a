/* self.c - what we change of our own process while we watch, and what a command must not inherit */
#include <errno.h>
#include <sys/signalfd.h>

#include "self.h"

/* A background job of a script has SIGINT ignored; whoever sends it to us means it. */
static int take_signals(struct self *self)
{
	struct sigaction end = { .sa_handler = SIG_DFL }, hup;
	sigset_t set;
	int fd;

	sigaction(SIGHUP, NULL, &hup);
	sigaction(SIGINT, &end, &self->sigint);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (hup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &self->mask);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Each object that is profiled keeps its file open; the soft limit is for programs that select().
 */
static void raise_file_limit(struct self *self)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &self->files);
	limit = self->files;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/*
 * What a process had mapped can be asked only while it lives. On a busy machine whoever waits for
 * his turn comes too late for every fifth tick of a shell script; before all others, for one in a
 * hundred. It is little work, and none where nothing happens. Who may not, does without.
 */
static void raise_priority(struct self *self)
{
	struct sched_param first = { .sched_priority = 1 };

	self->policy = sched_getscheduler(0);
	sched_getparam(0, &self->param);
	if (self->policy == SCHED_OTHER || self->policy == SCHED_BATCH)
		sched_setscheduler(0, SCHED_RR, &first);
}

int self_prepare(struct self *self)
{
	raise_file_limit(self);
	raise_priority(self);
	return take_signals(self);
}

void self_relax(const struct self *self)
{
	sched_setscheduler(0, self->policy, &self->param);
}

void self_restore(const struct self *self)
{
	self_relax(self);
	setrlimit(RLIMIT_NOFILE, &self->files);
	sigaction(SIGINT, &self->sigint, NULL);
	sigprocmask(SIG_SETMASK, &self->mask, NULL);
}
