/* attach.c - profiles a process that runs already */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/scope.h"

#include "maps.h"
#include "verb.h"
#include "watch.h"

/* PF_KTHREAD of the kernel's sched.h, which /proc/PID/stat shows. */
#define STAT_KTHREAD 0x00200000u

static int parse_pid(pid_t *out, const struct options *o)
{
	unsigned long pid;
	char *end;

	if (o->argc != 1) {
		log_err("attach: %s; 'profilctl attach PID'",
			o->argc ? "one process at a time" : "no process given");
		return CTL_USAGE;
	}
	errno = 0;
	pid = strtoul(o->argv[0], &end, 10);
	if (errno || end == o->argv[0] || *end || *o->argv[0] == '-' || !pid || pid > INT32_MAX) {
		log_err("attach: %s is no process id", o->argv[0]);
		return CTL_USAGE;
	}
	*out = (pid_t)pid;
	return CTL_OK;
}

/* Reads a small file of /proc/PID, as a string. Returns its length; 0: it is not there. */
static size_t read_proc(pid_t pid, const char *name, char *out, size_t bytes)
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

static bool is_kernel_thread(pid_t pid)
{
	char stat[1024], *after;
	unsigned int flags = 0;

	read_proc(pid, "stat", stat, sizeof(stat));
	/* The name in brackets may hold anything, brackets too. */
	after = strrchr(stat, ')');
	return after && sscanf(after, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
	       flags & STAT_KTHREAD;
}

/* The leader of the process that thread @pid belongs to; 0: there is no such thread. */
static pid_t leader_of(pid_t pid)
{
	char text[4096], *line;
	int leader = 0;

	read_proc(pid, "status", text, sizeof(text));
	line = strstr(text, "\nTgid:");
	if (line)
		sscanf(line, "\nTgid: %d", &leader);
	return (pid_t)leader;
}

/* Says why @pid can't be profiled, if it can't. */
static int check(pid_t pid)
{
	pid_t leader = leader_of(pid);
	struct maps maps;
	int err;

	if (!leader) {
		log_err("no process %d; see ps(1)", (int)pid);
		return CTL_GONE;
	}
	if (leader != pid) {
		log_err("%d is a thread of process %d: attach to that", (int)pid, (int)leader);
		return CTL_ERROR;
	}
	if (is_kernel_thread(pid)) {
		log_err("%d is a kernel thread: it has no code of its own to profile", (int)pid);
		return CTL_ERROR;
	}
	err = maps_read(&maps, pid);
	if (!err) {
		maps_fini(&maps);
		return CTL_OK;
	}
	if (err == -EACCES || err == -EPERM) {
		log_err("process %d is not yours to profile; root may", (int)pid);
		return CTL_DENIED;
	}
	log_err("process %d has ended", (int)pid);
	return CTL_GONE;
}

static char *command_of(pid_t pid)
{
	char text[4096];
	size_t n = read_proc(pid, "cmdline", text, sizeof(text));

	for (size_t i = 0; i + 1 < n; i++)
		text[i] = text[i] ? text[i] : ' ';
	if (!n) {
		n = read_proc(pid, "comm", text, sizeof(text));
		text[n ? n - 1 : 0] = '\0';
	}
	return strdup(text);
}

int verb_attach(const struct options *o)
{
	struct watch w;
	pid_t pid;
	int status;

	status = parse_pid(&pid, o);
	if (!status)
		status = check(pid);
	if (status)
		return status;
	status = watch_init(&w, o);
	if (!status)
		status = watch_attach(&w, pid, false);
	if (!status) {
		w.profile->command = command_of(pid);
		watch_run(&w);
		status = watch_finish(&w);
	}
	watch_fini(&w);
	return status;
}
