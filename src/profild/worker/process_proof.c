/* process_proof.c - which process a client names by descriptors, and whether it may observe it */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/capability.h>
#include <linux/magic.h>

#include "base/cleanup.h"
#include "process_proof.h"
#include "work.h"

/* A pidfd is an anonymous inode before Linux 6.9, and an inode of pidfs since then. */
static bool is_pidfd(int fd)
{
	char path[64], name[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n > 0 ? n : 0] = 0;
	return strcmp(name, "anon_inode:[pidfd]") == 0 || strncmp(name, "pidfd:[", 7) == 0;
}

/* Sets *@out to the pid of @pidfd, in our own namespace; -ESRCH if it has ended or has none here.
 */
static int pid_of(pid_t *out, int pidfd)
{
	struct pollfd gone = { .fd = pidfd, .events = POLLIN };
	__cleanup(fclosep) FILE *f = NULL;
	char path[64], line[128];
	int pid = 0;

	if (!is_pidfd(pidfd))
		return -EBADF;

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

static int open_of(pid_t pid, const char *file)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The pid in the path of @fd, /proc/PID/maps, as its procfs numbers it; 0: another file. */
static int number_of(int fd)
{
	char path[64], name[128], *base;
	struct statfs fs;
	struct stat st;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	if (n < 0)
		return 0;
	name[n] = 0;
	base = strrchr(name, '/');
	if (!base || strcmp(base, "/maps") != 0 || fstatfs(fd, &fs) < 0 ||
	    fs.f_type != PROC_SUPER_MAGIC || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	*base = 0;
	base = strrchr(name, '/');
	return base ? atoi(base + 1) : 0;
}

/*
 * The value of @name in /proc/PID/status, which is read into @text; NULL: none, with errno ESRCH if
 * the process has ended.
 */
static const char *status_of(pid_t pid, const char *name, char text[4096], struct stat *st)
{
	__cleanup(closep) int fd = open_of(pid, "status");
	const char *at;
	ssize_t n;

	errno = fd < 0 && fd != -ENOENT ? -fd : ESRCH;
	if (fd < 0 || fstat(fd, st) < 0)
		return NULL;
	n = read(fd, text, 4095);
	text[n > 0 ? n : 0] = 0;
	at = strstr(text, name);
	return at ? at + strlen(name) : NULL;
}

/* True if @pid has number @n in one of its pid namespaces. */
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

/* A process that maps memory in between reads differently the second time. */
#define PROOF_TRIES 3

/*
 * True if @fd is the maps of @pid. In our own procfs the inodes are equal. In a container's procfs
 * the path must have one of the numbers of @pid, and the contents must be equal: addresses are
 * random, so only forks of the same image show the same mappings.
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

/* Sets *@out to the user of the process; -EACCES if the process is set-id or not dumpable. */
static int user_of(uid_t *out, pid_t pid)
{
	unsigned int uid[4], gid[4];
	char text[4096];
	struct stat st;
	const char *at = status_of(pid, "\nUid:", text, &st);

	if (!at)
		return errno == ESRCH ? -ESRCH : -EACCES;
	if (sscanf(at, "%u %u %u %u", &uid[0], &uid[1], &uid[2], &uid[3]) != 4)
		return -EACCES;
	at = strstr(text, "\nGid:");
	if (!at || sscanf(at, "\nGid: %u %u %u %u", &gid[0], &gid[1], &gid[2], &gid[3]) != 4)
		return -EACCES;
	if (uid[0] != uid[1] || uid[1] != uid[2] || gid[0] != gid[1] || gid[1] != gid[2])
		return -EACCES;
	/* The files in /proc/PID of a process that is not dumpable belong to root. */
	if (st.st_uid != uid[1])
		return -EACCES;
	*out = uid[1];
	return 0;
}

int process_proof(pid_t *tgid, uint32_t flags, uid_t uid, int pidfd, int maps)
{
	uid_t user;
	int err = pid_of(tgid, pidfd);

	if (err || flags & WORK_PRIVILEGED)
		return err;
	err = user_of(&user, *tgid);
	if (err || flags & WORK_MEMBER)
		return err;
	return user == uid && is_maps_of(maps, *tgid) ? 0 : -EACCES;
}

/*
 * capget() and stat() of the namespace take no lock that a client could hold, so the main thread
 * may call them.
 */
bool process_privileged(pid_t pid)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, (int)pid };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	struct stat theirs, own;
	char path[64];

	if (syscall(SYS_capget, &h, data) < 0 ||
	    !(data[CAP_TO_INDEX(CAP_SYS_PTRACE)].effective & CAP_TO_MASK(CAP_SYS_PTRACE)))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	return stat(path, &theirs) == 0 && stat("/proc/self/ns/user", &own) == 0 &&
	       theirs.st_dev == own.st_dev && theirs.st_ino == own.st_ino;
}

/* True if the real, effective, saved and file system uids of @pid are @uid. */
static bool is_of(pid_t pid, uid_t uid)
{
	unsigned int id[4];
	char text[4096];
	struct stat st;
	const char *at = status_of(pid, "\nUid:", text, &st);

	if (!at || sscanf(at, "%u %u %u %u", &id[0], &id[1], &id[2], &id[3]) != 4)
		return false;
	return id[0] == uid && id[1] == uid && id[2] == uid && id[3] == uid;
}

bool process_privileged_as(pid_t pid, uid_t uid)
{
	return is_of(pid, uid) && process_privileged(pid) && is_of(pid, uid);
}
