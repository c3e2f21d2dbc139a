/* policy.c - who may profile whom, and how much */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "core/scope.h"
#include "policy.h"

struct usage {
	uint32_t profiles;
	uint32_t regions;
	uint64_t bins;
};

/* What @uid has, or everybody where @all; @except not counted. */
static struct usage usage_of(const struct profild *d, uid_t uid, bool all,
			     const struct session *except)
{
	struct usage u = { 0, 0, 0 };

	for (const struct session *s = d->sessions; s; s = s->next) {
		uint32_t nregions;
		uint64_t nbins;

		if (s == except || (!all && s->uid != uid))
			continue;
		session_usage(s, &nregions, &nbins);
		u.profiles++;
		u.regions += nregions;
		u.bins += nbins;
	}
	return u;
}

static int check_quota(const struct quota *q, const struct usage *u, uint32_t profiles,
		       uint32_t nregions, uint64_t nbins)
{
	if (u->bins + nbins > q->bins)
		return -ENOMEM;
	if (u->profiles + profiles > q->profiles || u->regions + nregions > q->regions)
		return -EAGAIN;
	return 0;
}

/* Root is bound by what there is for all, everybody else also by what there is for one. */
static int check_usage(struct profild *d, uid_t uid, uint32_t profiles, uint32_t nregions,
		       uint64_t nbins, const struct session *except)
{
	struct usage u = usage_of(d, uid, true, except);
	int err = check_quota(&d->config.all, &u, profiles, nregions, nbins);

	if (err || uid == 0)
		return err;
	u = usage_of(d, uid, false, except);
	return check_quota(&d->config.user, &u, profiles, nregions, nbins);
}

int policy_rate(const struct profild *d, uid_t uid, uint64_t period_ns)
{
	if (period_ns < period_of(RATE_MAX_HZ) || period_ns > period_of(RATE_MIN_HZ))
		return -EINVAL;
	return uid && period_ns < period_of(d->config.user.rate_hz) ? -EACCES : 0;
}

int policy_start(struct profild *d, uid_t uid, uint32_t start_flags, uint32_t nregions,
		 uint64_t nbins, const struct session *old)
{
	if (uid && start_flags & PROFIL_START_FAST && d->config.restrict_fast)
		return -EACCES;
	return check_usage(d, uid, 1, nregions, nbins, old);
}

int policy_image(struct profild *d, uid_t uid, uint32_t nregions, uint64_t nbins)
{
	return check_usage(d, uid, 0, nregions, nbins, NULL);
}

/* The pid behind @pidfd, in our own namespace; -ESRCH where it has gone or is not there. */
static int pid_of(pid_t *out, int pidfd)
{
	struct pollfd gone = { .fd = pidfd, .events = POLLIN };
	__cleanup(fclosep) FILE *f = NULL;
	char path[64], line[128];
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	f = fopen(path, "re");
	if (!f)
		return -EBADF;
	while (!pid && fgets(line, sizeof(line), f))
		sscanf(line, "Pid: %d", &pid);
	if (!pid)
		return -EBADF;
	if (pid < 0 || poll(&gone, 1, 0) > 0)
		return -ESRCH;
	*out = pid;
	return 0;
}

/* Says whether @fd is the /proc/PID/maps of @pid: as procfs itself names it. */
static bool is_maps_of(int fd, pid_t pid)
{
	char path[64], name[64], want[64];
	struct statfs fs;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(want, sizeof(want), "/proc/%d/maps", (int)pid);
	n = readlink(path, name, sizeof(name) - 1);
	if (n < 0 || fstatfs(fd, &fs) < 0)
		return false;
	name[n] = 0;
	return fs.f_type == PROC_SUPER_MAGIC && !strcmp(name, want);
}

int policy_attach(pid_t *tgid, const struct ucred *peer, int pidfd, int maps)
{
	struct stat owner;
	char path[64];
	int err = pid_of(tgid, pidfd);

	if (err)
		return err;
	if (peer->uid == 0)
		return 0;
	if (!is_maps_of(maps, *tgid))
		return -EACCES;
	snprintf(path, sizeof(path), "/proc/%d", (int)*tgid);
	if (stat(path, &owner) < 0)
		return -ESRCH;
	/* A process that may not be dumped belongs to root here. */
	return owner.st_uid == peer->uid ? 0 : -EACCES;
}

int policy_connect(const struct profild *d, uid_t uid, uint32_t own, uint32_t all)
{
	if (all >= d->config.all.connections || (uid && own >= d->config.user.connections))
		return -EAGAIN;
	return 0;
}
