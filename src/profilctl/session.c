/* session.c - one process that is watched: a connection of its own, and what follows it */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/scope.h"

#include "session.h"

/* Opens the process, and its /proc/PID/maps: who may open that may profile it. */
static int open_target(struct session *s, int *maps)
{
	char path[64];

	s->pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	if (s->pidfd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)s->pid);
	*maps = open(path, O_RDONLY | O_CLOEXEC);
	if (*maps < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return 0;
}

int session_open(struct session *s, struct reader *r, struct profile *p, pid_t pid, __u64 period_ns,
		 __u32 flags)
{
	__cleanup(closep) int maps = -1;
	int err;

	*s = (struct session){
		.pid = pid, .pidfd = -1, .reader = r, .inherits = flags & PROFIL_ATTACH_INHERIT
	};
	err = open_target(s, &maps);
	if (!err)
		err = reader_attach(r, s->pidfd, maps, period_ns, flags, &s->totals);
	if (err == -ENOMEM)
		err = -EAGAIN; /* the daemon's, not ours */
	if (!err)
		err = follow_open(&s->follow, r, p, pid, s->totals.tgid);
	if (err < 0)
		session_close(s);
	return err;
}

int session_step(struct session *s, bool readable, bool gone)
{
	int err = readable ? reader_pump(s->reader) : 0;

	if (!err)
		err = follow_events(s->follow);
	s->ended |= gone || follow_ended(s->follow);
	return err;
}

int session_detach(struct session *s)
{
	struct profil_msg_reply totals = { 0 };
	int err;

	follow_stop(s->follow);
	err = reader_detach(s->reader, &totals);
	s->totals = totals;
	return err < 0 ? -ENODATA : 0;
}

void session_close(struct session *s)
{
	follow_close(steal(s->follow));
	reader_close(steal(s->reader));
	closep(&s->pidfd);
	s->pidfd = -1;
}
