/* self_setup.c - signals and limits that profilctl changes for itself while it records */
#include <errno.h>
#include <sys/signalfd.h>

#include "self_setup.h"

/*
 * A blocked signal is delivered to a signalfd even if it is ignored, as SIGINT is in a script's
 * background jobs. So SIGINT ends a recording there, too.
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

int self_prepare(struct self *self)
{
	self_raise_files(self);
	return self_signals(self, (const int[]){ SIGINT, SIGTERM, SIGHUP, 0 });
}

void self_restore(const struct self *self)
{
	setrlimit(RLIMIT_NOFILE, &self->files);
	sigprocmask(SIG_SETMASK, &self->mask, NULL);
}
