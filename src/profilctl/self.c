/* self.c - what we change of our own process while we watch, and what a command must not inherit */
#include <errno.h>
#include <sys/signalfd.h>

#include "self.h"

/*
 * What is blocked comes also where it is ignored: a background job of a script has SIGINT so, and
 * whoever sends it to us means it.
 */
int self_signals(struct self *self, const int *signals)
{
	struct sigaction hup;
	sigset_t set;
	int fd;

	sigaction(SIGHUP, NULL, &hup);
	sigemptyset(&set);
	for (; *signals; signals++) {
		if (*signals != SIGHUP || hup.sa_handler != SIG_IGN)
			sigaddset(&set, *signals);
	}
	sigprocmask(SIG_BLOCK, &set, &self->mask);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

void self_raise_files(struct self *self)
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
	self_raise_files(self);
	raise_priority(self);
	return self_signals(self, (const int[]){ SIGINT, SIGTERM, SIGHUP, 0 });
}

void self_relax(const struct self *self)
{
	sched_setscheduler(0, self->policy, &self->param);
}

void self_restore(const struct self *self)
{
	self_relax(self);
	setrlimit(RLIMIT_NOFILE, &self->files);
	sigprocmask(SIG_SETMASK, &self->mask, NULL);
}
