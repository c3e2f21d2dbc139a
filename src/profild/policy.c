/* policy.c - who may profile whom, and how much */
#include <errno.h>
#include <fcntl.h>
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

static void add_usage(struct usage *u, uint32_t nregions, uint64_t nbins)
{
	u->profiles++;
	u->regions += nregions;
	u->bins += nbins;
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
	struct usage all = { 0 }, own = { 0 };
	int err;

	for (const struct session *s = d->sessions; s; s = s->next) {
		uint32_t regions;
		uint64_t bins;

		if (s == except || d->sampler->ops->ended(d->sampler, s->targets))
			continue; /* the next pass of the mirror puts away what has ended */
		session_usage(s, &regions, &bins);
		add_usage(&all, regions, bins);
		if (s->uid == uid)
			add_usage(&own, regions, bins);
	}
	err = check_quota(&d->config.all, &all, profiles, nregions, nbins);
	if (err || uid == 0)
		return err;
	return check_quota(&d->config.user, &own, profiles, nregions, nbins);
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

/* Opened by us, never by somebody else: a name there is what procfs says. */
static int open_of(pid_t pid, const char *file)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * Of which process @fd is the maps, as procfs names it there; 0 where it is no such file, and one
 * whose reading could block or tell.
 */
static int number_of(int fd)
{
	char path[64], name[128], *base;
	struct statfs fs;
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	if (n < 0 || fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		return 0;
	name[n] = 0;
	base = strrchr(name, '/');
	if (fs.f_type != PROC_SUPER_MAGIC || !S_ISREG(st.st_mode) || !base || strcmp(base, "/maps"))
		return 0;
	*base = 0;
	base = strrchr(name, '/');
	return base ? atoi(base + 1) : 0;
}

/* What /proc/PID/status says behind @name, in @text; NULL where it does not. */
static const char *status_of(pid_t pid, const char *name, char text[4096], struct stat *st)
{
	__cleanup(closep) int fd = open_of(pid, "status");
	const char *at;
	ssize_t n;

	if (fd < 0 || fstat(fd, st) < 0)
		return NULL;
	n = read(fd, text, 4095);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, name);
	return at ? at + strlen(name) : NULL;
}

/* Says whether @pid is number @n in one of the pid namespaces that it is in. */
static bool has_number(pid_t pid, int n)
{
	char text[4096], *end;
	struct stat st;
	const char *at = status_of(pid, "\nNSpid:", text, &st);

	for (; at && *at == '\t'; at = end) {
		if (strtol(at, &end, 10) == n)
			return true;
	}
	return false;
}

/* A process that maps something just now reads differently twice. */
#define PROOF_TRIES 3

/*
 * Says whether @fd is the maps of @pid: in our procfs they are one file. In a container's it must
 * have one of the numbers of @pid, and show the same mappings: addresses are random, so only those
 * that a process shares with what it forked from read so.
 */
static bool is_maps_of(int fd, pid_t pid)
{
	__cleanup(closep) int own = open_of(pid, "maps");
	char shown[4096], real[4096];
	struct stat st, own_st;

	if (own < 0 || !has_number(pid, number_of(fd)))
		return false;
	if (fstat(fd, &st) < 0 || fstat(own, &own_st) < 0)
		return false;
	if (st.st_dev == own_st.st_dev && st.st_ino != own_st.st_ino)
		return false;
	for (int i = 0; i < PROOF_TRIES; i++) {
		ssize_t n = pread(fd, shown, sizeof(shown), 0);

		if (n <= 0)
			return false;
		if (n == pread(own, real, sizeof(real), 0) && !memcmp(shown, real, (size_t)n))
			return true;
	}
	return false;
}

/* The user whose the process is; -EACCES where it is more than that: set-id, or not dumpable. */
static int user_of(uid_t *out, pid_t pid)
{
	unsigned int uid[4], gid[4];
	char text[4096];
	struct stat st;
	const char *at = status_of(pid, "\nUid:", text, &st);

	if (!at)
		return -ESRCH;
	if (sscanf(at, "%u %u %u %u", &uid[0], &uid[1], &uid[2], &uid[3]) != 4)
		return -EACCES;
	at = strstr(text, "\nGid:");
	if (!at || sscanf(at, "\nGid: %u %u %u %u", &gid[0], &gid[1], &gid[2], &gid[3]) != 4)
		return -EACCES;
	if (uid[0] != uid[1] || uid[1] != uid[2] || gid[0] != gid[1] || gid[1] != gid[2])
		return -EACCES;
	/* The files of a process that may not be dumped are root's; its directory is not. */
	if (st.st_uid != uid[1])
		return -EACCES;
	*out = uid[1];
	return 0;
}

/* Is whoever connected through @sock in group profil? */
static bool is_operator(const struct profild *d, int sock, const struct ucred *peer)
{
	gid_t groups[256];
	socklen_t len = sizeof(groups);

	if (d->operators == (gid_t)-1)
		return false;
	if (peer->gid == d->operators)
		return true;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return false;
	for (size_t i = 0; i < len / sizeof(groups[0]); i++) {
		if (groups[i] == d->operators)
			return true;
	}
	return false;
}

int policy_attach(pid_t *tgid, const struct profild *d, int sock, const struct ucred *peer,
		  int pidfd, int maps)
{
	uid_t user;
	int err = pid_of(tgid, pidfd);

	if (err || peer->uid == 0)
		return err;
	err = user_of(&user, *tgid);
	if (err)
		return err;
	if (is_operator(d, sock, peer))
		return 0;
	return user == peer->uid && is_maps_of(maps, *tgid) ? 0 : -EACCES;
}

/* A user's allowance: it grows with time, up to a second's worth, and each request takes from it.
 */
struct allowance {
	struct allowance *next;
	uid_t uid;
	uint64_t since_ns; /* when it was 0, seen from how much it is now */
};

int policy_request(struct profild *d, uid_t uid, uint64_t now_ns)
{
	uint64_t each_ns = NSEC_PER_SEC / d->config.user.requests;
	struct allowance *a = d->allowances;

	if (!uid)
		return 0;
	while (a && a->uid != uid)
		a = a->next;
	if (!a) {
		a = calloc(1, sizeof(*a));
		if (!a)
			return -ENOMEM;
		a->uid = uid;
		a->next = d->allowances;
		d->allowances = a;
	}
	if (a->since_ns + NSEC_PER_SEC < now_ns)
		a->since_ns = now_ns - NSEC_PER_SEC;
	if (a->since_ns + each_ns > now_ns)
		return -EAGAIN;
	a->since_ns += each_ns;
	return 0;
}

void policy_close(struct profild *d)
{
	while (d->allowances) {
		struct allowance *a = d->allowances;

		d->allowances = a->next;
		free(a);
	}
}

int policy_connect(const struct profild *d, uid_t uid, uint32_t own, uint32_t all)
{
	if (all >= d->config.all.connections || (uid && own >= d->config.user.connections))
		return -EAGAIN;
	return 0;
}
