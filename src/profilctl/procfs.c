/* procfs.c - what /proc says of processes */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/scope.h"

#include "grow.h"
#include "procfs.h"

/* PF_KTHREAD of the kernel's sched.h, which /proc/PID/stat shows. */
#define STAT_KTHREAD 0x00200000u

size_t procfs_read(pid_t pid, const char *name, char *out, size_t bytes)
{
	__cleanup(closep) int fd = -1;
	char path[64];
	ssize_t n = -1;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		n = read(fd, out, bytes - 1);
	out[n < 0 ? 0 : n] = '\0';
	return n < 0 ? 0 : (size_t)n;
}

bool procfs_is_kernel_thread(pid_t pid)
{
	char stat[1024], *after;
	unsigned int flags = 0;

	procfs_read(pid, "stat", stat, sizeof(stat));
	/* The name in brackets may hold anything, brackets too. */
	after = strrchr(stat, ')');
	return after && sscanf(after, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
	       flags & STAT_KTHREAD;
}

pid_t procfs_leader(pid_t pid)
{
	char text[4096], *line;
	int leader = 0;

	procfs_read(pid, "status", text, sizeof(text));
	line = strstr(text, "\nTgid:");
	if (line)
		sscanf(line, "\nTgid: %d", &leader);
	return (pid_t)leader;
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

	for (size_t i = 0; i + 1 < n; i++)
		text[i] = text[i] ? text[i] : ' ';
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
	/* An upgrade has taken the name away; what runs is what had it. */
	if (n > (ssize_t)sizeof(deleted) && !strcmp(own + n - (sizeof(deleted) - 1), deleted))
		own[n - (sizeof(deleted) - 1)] = '\0';
	return !strcmp(own, exe);
}

/* Says whether @path names @name, or a part of its own, whole, that begins with it. */
static bool has_part(const char *path, const char *name, const char *suffix)
{
	size_t n = strlen(name), more = strlen(suffix);

	for (const char *at = path; (at = strstr(at, name)); at++) {
		const char *end = at + n;

		if (at == path || at[-1] != '/')
			continue;
		if (!strncmp(end, suffix, more) && (!end[more] || end[more] == '/'))
			return true;
		if (!*end || *end == '/')
			return true;
	}
	return false;
}

/* Says whether @path is @above or lies below it. */
static bool is_below(const char *path, const char *above)
{
	size_t n = strlen(above);

	while (n > 1 && above[n - 1] == '/')
		n--;
	return !strncmp(path, above, n) && (!path[n] || path[n] == '/' || path[n - 1] == '/');
}

/* Where a hierarchy is usually mounted, below /sys/fs/cgroup, if it is not the only one. */
static const char *directory_of(const char *controllers)
{
	static const char name[] = "name=";

	if (!*controllers)
		return "unified";
	return strncmp(controllers, name, sizeof(name) - 1) ? controllers
							    : controllers + sizeof(name) - 1;
}

/* HIERARCHY:CONTROLLERS:PATH: as it stands there, or as the file system has it. */
static bool line_matches(char *line, const struct procfs_select *select)
{
	char *controllers = strchr(line, ':'),
	     *path = controllers ? strchr(controllers + 1, ':') : NULL;
	char mounted[4096 + 64];

	if (!path)
		return false;
	*controllers++ = *path++ = '\0';
	/* systemd has its units in the new hierarchy, or in one of its own. */
	if (select->unit && *controllers && strcmp(controllers, "name=systemd") != 0)
		return false;
	if (select->unit && !has_part(path, select->unit, ".service"))
		return false;
	if (!select->cgroup || is_below(path, select->cgroup))
		return true;
	snprintf(mounted, sizeof(mounted), "/%s%s", directory_of(controllers), path);
	return is_below(mounted, select->cgroup);
}

static bool has_cgroup(pid_t pid, const struct procfs_select *select)
{
	char text[4096], *line, *rest;

	procfs_read(pid, "cgroup", text, sizeof(text));
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (line_matches(line, select))
			return true;
	}
	return false;
}

bool procfs_is_selective(const struct procfs_select *select)
{
	return select->comm || select->exe || select->cgroup || select->unit;
}

bool procfs_matches(pid_t pid, pid_t parent, const struct procfs_select *select)
{
	if (pid == getpid() || procfs_is_kernel_thread(pid))
		return false;
	if (select->comm && !has_comm(pid, select->comm))
		return false;
	if (select->exe && !has_exe(pid, select->exe))
		return false;
	return !(select->cgroup || select->unit) || has_cgroup(pid, select) ||
	       (parent && has_cgroup(parent, select));
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

		if (pid && procfs_matches(pid, 0, select))
			err = append(out, n, pid);
	}
	closedir(proc);
	if (!err)
		return 0;
	free(*out);
	*out = NULL;
	return err;
}
