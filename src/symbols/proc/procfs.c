/* procfs.c - reads and selects processes in /proc */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#include "base/grow.h"
#include "procfs.h"

/* PF_KTHREAD from the kernel's sched.h, in the flags of /proc/PID/stat. */
#define STAT_KTHREAD 0x00200000u

size_t procfs_read(pid_t pid, const char *name, char *out, size_t bytes)
{
	__cleanup(closep) int fd = -1;
	char path[64];
	size_t n = 0;
	ssize_t more;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	do {
		more = fd < 0 ? 0 : read(fd, out + n, bytes - 1 - n);
		n += more > 0 ? (size_t)more : 0;
	} while (more > 0 && n < bytes - 1);
	out[n] = '\0';
	return n;
}

bool procfs_is_kernel_thread(pid_t pid)
{
	char stat[1024], *after;
	unsigned int flags = 0;

	procfs_read(pid, "stat", stat, sizeof(stat));
	/* The comm in brackets can contain brackets itself. */
	after = strrchr(stat, ')');
	return after && sscanf(after, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
	       flags & STAT_KTHREAD;
}

bool procfs_has_ended(pid_t pid)
{
	char stat[1024], *after;

	procfs_read(pid, "stat", stat, sizeof(stat));
	after = strrchr(stat, ')');
	return !after || strspn(after + 1, " ZX") > 1;
}

pid_t procfs_parent(pid_t pid)
{
	char stat[1024], *after;
	int parent = 0;

	procfs_read(pid, "stat", stat, sizeof(stat));
	after = strrchr(stat, ')');
	return after && sscanf(after, ") %*c %d", &parent) == 1 ? parent : 0;
}

/* User and system time of @pid, and of the children it has waited for; all 0: it has ended. */
static void read_ticks(pid_t pid, unsigned long long ticks[4])
{
	char stat[1024], *after;

	procfs_read(pid, "stat", stat, sizeof(stat));
	after = strrchr(stat, ')');
	if (!after ||
	    sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
		   &ticks[0], &ticks[1], &ticks[2], &ticks[3]) != 4)
		memset(ticks, 0, 4 * sizeof(*ticks));
}

static __u64 ticks_ns(unsigned long long ticks)
{
	return ticks * 1000000000u / (unsigned long long)sysconf(_SC_CLK_TCK);
}

__u64 procfs_cpu_ns(pid_t pid)
{
	unsigned long long ticks[4];

	read_ticks(pid, ticks);
	return ticks_ns(ticks[0] + ticks[1] + ticks[2] + ticks[3]);
}

__u64 procfs_process_cpu_ns(pid_t pid)
{
	unsigned long long ticks[4];

	read_ticks(pid, ticks);
	return ticks_ns(ticks[0] + ticks[1]);
}

/* The number after @name in /proc/PID/status; -1: there is none. */
static long status_number(pid_t pid, const char *name)
{
	char text[4096], *line;

	procfs_read(pid, "status", text, sizeof(text));
	line = strstr(text, name);
	return line ? strtol(line + strlen(name), NULL, 10) : -1;
}

uid_t procfs_uid(pid_t pid)
{
	return (uid_t)status_number(pid, "\nUid:");
}

pid_t procfs_leader(pid_t pid)
{
	long leader = status_number(pid, "\nTgid:");

	return leader > 0 ? (pid_t)leader : 0;
}

const char *procfs_comm(pid_t tid, char *out, size_t bytes)
{
	if (!procfs_read(tid, "comm", out, bytes))
		snprintf(out, bytes, "?");
	out[strcspn(out, "\n")] = '\0';
	return out;
}

char *procfs_command(pid_t pid)
{
	char text[4096];
	size_t n = procfs_read(pid, "cmdline", text, sizeof(text));

	for (size_t i = 0; i < n; i++)
		text[i] = text[i] ? text[i] : ' ';
	/* A process that sets its title fills what is left of its arguments. */
	while (n && text[n - 1] == ' ')
		n--;
	text[n] = '\0';
	return strdup(n ? text : procfs_comm(pid, text, sizeof(text)));
}

static bool has_comm(pid_t pid, const char *comm)
{
	char own[64];

	return !strcmp(procfs_comm(pid, own, sizeof(own)), comm);
}

static bool has_exe(pid_t pid, const char *exe)
{
	static const char deleted[] = " (deleted)";
	char path[64], own[PATH_MAX + sizeof(deleted)];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, own, sizeof(own) - 1);
	own[n < 0 ? 0 : n] = '\0';
	/* After an upgrade the running executable is deleted; compare its former name. */
	if (n > (ssize_t)sizeof(deleted) && !strcmp(own + n - (sizeof(deleted) - 1), deleted))
		own[n - (sizeof(deleted) - 1)] = '\0';
	return !strcmp(own, exe);
}

bool procfs_is_below(pid_t pid, const char *cgroup)
{
	size_t n = strcmp(cgroup, "/") ? strlen(cgroup) : 0;
	char text[4096], *path;

	procfs_read(pid, "cgroup", text, sizeof(text));
	path = strstr(text, "0::");
	if (!path || (path != text && path[-1] != '\n'))
		return false;
	path += strlen("0::");
	path[strcspn(path, "\n")] = '\0';
	return !strncmp(path, cgroup, n) && (path[n] == '/' || !path[n]);
}

bool procfs_is_selective(const struct procfs_select *select)
{
	return select->comm || select->exe || select->cgroup || select->unit || select->container ||
	       select->pod;
}

static bool matches(pid_t pid, const struct procfs_select *select)
{
	return pid != getpid() && !procfs_is_kernel_thread(pid) &&
	       (!select->comm || has_comm(pid, select->comm)) &&
	       (!select->exe || has_exe(pid, select->exe)) &&
	       (!select->cgroup || procfs_is_below(pid, select->cgroup));
}

static int append(pid_t **pids, size_t *n, pid_t pid)
{
	pid_t *more = grow(*pids, *n, sizeof(*more));

	if (!more)
		return -ENOMEM;
	*pids = more;
	more[(*n)++] = pid;
	return 0;
}

int procfs_find(pid_t **out, size_t *n, const struct procfs_select *select)
{
	DIR *proc = opendir("/proc");
	const struct dirent *e;
	int err = 0;

	*out = NULL;
	*n = 0;
	if (!proc)
		return -errno;
	while (!err && (e = readdir(proc))) {
		pid_t pid = isdigit((unsigned char)*e->d_name) ? atoi(e->d_name) : 0;

		if (pid && matches(pid, select))
			err = append(out, n, pid);
	}
	closedir(proc);
	if (!err)
		return 0;
	free(*out);
	*out = NULL;
	return err;
}
