/* uprobes.c - calls of a function, or of a static probe, as events */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/observe_maps.h"

#include "symbols/elf/probe_point.h"
#include "uprobes.h"

/*
 * The kernel makes a tracepoint of each line that is written to tracefs's uprobe_events. A
 * definition costs nothing until an event is opened for it. Its name follows from the file and the
 * offset: a second definition finds the first, also one that a killed profilctl has left.
 */
#define UPROBE "uprobe:"
#define USDT "usdt:"

/* The daemon closes the event soon after it was used. */
#define BUSY_TRIES 100
#define BUSY_NS 10000000

static int events_folder = -1;
static char defined[64]; /* "-:GROUP/NAME"; "": nothing */

bool uprobe_is(const char *name)
{
	return !strncmp(name, UPROBE, strlen(UPROBE)) || !strncmp(name, USDT, strlen(USDT));
}

static int open_in(const char *folders, const char *name)
{
	__cleanup(freep) char *list = strdup(folders);
	char *rest = list, *folder, path[PATH_MAX];
	struct stat st;

	while (rest && (folder = strsep(&rest, ":"))) {
		int fd;

		snprintf(path, sizeof(path), "%s/%s", folder, name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -ENXIO;
}

static int open_file(const char *name)
{
	static const char libraries[] =
		"/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib/aarch64-linux-gnu:"
		"/usr/lib/aarch64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib";
	int fd;

	if (strchr(name, '/')) {
		fd = open(name, O_RDONLY | O_CLOEXEC);
		return fd < 0 ? -ENXIO : fd;
	}
	fd = open_in(libraries, name);
	return fd < 0 && getenv("PATH") ? open_in(getenv("PATH"), name) : fd;
}

/* Writes a line to uprobe_events. */
static int put(const char *line)
{
	__cleanup(closep) int fd =
		openat(events_folder, "../uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -EOPNOTSUPP : -errno;
	return write(fd, line, strlen(line)) < 0 ? -errno : 0;
}

static void undefine(void)
{
	const struct timespec pause = { 0, BUSY_NS };

	for (int i = 0; *defined && i < BUSY_TRIES && put(defined) == -EBUSY; i++)
		nanosleep(&pause, NULL);
	*defined = '\0';
}

/* Splits the name behind its kind: FILE:FUNCTION or FILE:PROVIDER:NAME. */
static int find_point(struct probe_point *point, int *file, char *name, bool is_static)
{
	char *last = strrchr(name, ':'), *provider = NULL;

	if (!last || !last[1])
		return -ENOENT;
	*last++ = '\0';
	if (is_static) {
		provider = strrchr(name, ':');
		if (!provider)
			return -ENOENT;
		*provider++ = '\0';
	}
	*file = open_file(name);
	if (*file < 0)
		return *file;
	return is_static ? probe_static(point, *file, provider, last)
			 : probe_function(point, *file, last);
}

static int define(struct event *e, int file, const struct probe_point *point)
{
	char line[256], id[32], path[80], semaphore[32] = "";
	struct stat st;
	int err;

	if (fstat(file, &st) < 0)
		return -errno;
	snprintf(id, sizeof(id), "p%llx_%llx", (unsigned long long)(st.st_dev ^ st.st_ino << 20),
		 point->offset);
	if (point->semaphore)
		snprintf(semaphore, sizeof(semaphore), "(0x%llx)", point->semaphore);
	snprintf(line, sizeof(line), "p:profil/%s /proc/self/fd/%d:0x%llx%s", id, file,
		 point->offset, semaphore);
	err = put(line);
	if (err < 0 && err != -EEXIST)
		return err;
	snprintf(defined, sizeof(defined), "-:profil/%s", id);
	atexit(undefine);
	snprintf(path, sizeof(path), "profil/%s/id", id);
	err = event_read_id(e, events_folder, path);
	e->type = PROFIL_EVENT_UPROBE;
	return err;
}

int uprobe_define(struct event *e, const char *name)
{
	bool is_static = !strncmp(name, USDT, strlen(USDT));
	__cleanup(freep) char *rest = strdup(strchr(name, ':') + 1);
	__cleanup(closep) int file = -1;
	struct probe_point point;
	int err = rest ? find_point(&point, &file, rest, is_static) : -ENOMEM;

	if (err < 0)
		return err;
	events_folder = events_open_tracefs();
	return events_folder < 0 ? events_folder : define(e, file, &point);
}
