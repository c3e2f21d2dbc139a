/* events.c - the events that can be sampled instead of CPU time */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/branch_records.h"
#include "base/cleanup.h"
#include "core/observe_maps.h"

#include "events.h"
#include "profilctl/options/options.h"

static const struct {
	const char *name;
	struct event event;
} known[] = {
	{ PROFILE_OFF_CPU, { PROFIL_EVENT_OFF_CPU, 0 } },
	{ PROFILE_BRANCHES, { PROFIL_EVENT_BRANCHES, 0 } },
	{ "cpu-clock", { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK } },
	{ "page-faults", { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS } },
	{ "minor-faults", { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN } },
	{ "major-faults", { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ } },
	{ "context-switches", { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES } },
	{ "cpu-migrations", { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS } },
	{ "alignment-faults", { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS } },
	{ "emulation-faults", { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS } },
	{ "cycles", { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES } },
	{ "instructions", { PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS } },
	{ "cache-references", { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES } },
	{ "cache-misses", { PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES } },
	{ "branches", { PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS } },
	{ "branch-misses", { PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES } },
	{ "bus-cycles", { PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES } },
	{ "stalled-cycles-frontend",
	  { PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND } },
	{ "stalled-cycles-backend", { PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND } },
	{ "ref-cycles", { PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES } },
};

/* Aliases that perf(1) has, too. */
static const struct {
	const char *name, *means;
} aliases[] = {
	{ "faults", "page-faults" },	       { "cs", "context-switches" },
	{ "migrations", "cpu-migrations" },    { "cpu-cycles", "cycles" },
	{ "branch-instructions", "branches" },
};

/* Cycles for each sample, of an event that is closed again at once. */
#define BRANCHES_TRY_PERIOD 1000003

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static int mount_tracefs(void)
{
	__cleanup(closep) int fs = fsopen("tracefs", FSOPEN_CLOEXEC);
	__cleanup(closep) int mount = -1;
	int fd;

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return errno == EPERM ? -EACCES : -ENOENT;
	mount = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	fd = mount < 0 ? -1 : openat(mount, "events", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -ENOENT : fd;
}

int events_open_tracefs(void)
{
	static const char *const places[] = { "/sys/kernel/tracing/events",
					      "/sys/kernel/debug/tracing/events" };
	int fd = -1, err = -ENOENT;

	for (size_t i = 0; i < COUNT(places) && err == -ENOENT; i++) {
		fd = open(places[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		err = fd < 0 ? -errno : faccessat(fd, ".", R_OK | X_OK, 0) < 0 ? -errno : 0;
		if (err)
			closep(&fd);
	}
	return err == -ENOENT ? mount_tracefs() : err ? err : fd;
}

int event_read_id(struct event *e, int folder, const char *path)
{
	__cleanup(closep) int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	__cleanup(fclosep) FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	unsigned long long id;

	if (!f)
		return -errno;
	steal_fd(fd);
	if (fscanf(f, "%llu", &id) != 1)
		return -ENOENT;
	*e = (struct event){ PERF_TYPE_TRACEPOINT, id };
	return 0;
}

/* SYSTEM:NAME. Rejects names that lead out of the folder. */
static int find_tracepoint(struct event *e, const char *name)
{
	const char *colon = strchr(name, ':');
	__cleanup(closep) int folder = -1;
	char path[512];

	if (!colon || colon == name || !colon[1] || strchr(name, '/') || *name == '.' ||
	    colon[1] == '.')
		return -ENOENT;
	folder = events_open_tracefs();
	if (folder < 0)
		return folder;
	snprintf(path, sizeof(path), "%.*s/%s/id", (int)(colon - name), name, colon + 1);
	return event_read_id(e, folder, path);
}

const char *event_name(const char *name)
{
	for (size_t i = 0; i < COUNT(aliases); i++) {
		if (!strcmp(name, aliases[i].name))
			return aliases[i].means;
	}
	return name;
}

int event_find(struct event *e, const char *name)
{
	name = event_name(name);
	for (size_t i = 0; i < COUNT(known); i++) {
		if (!strcmp(name, known[i].name)) {
			*e = known[i].event;
			return 0;
		}
	}
	return find_tracepoint(e, name);
}

bool event_is_off_cpu(const struct event *e)
{
	return e->type == PROFIL_EVENT_OFF_CPU;
}

bool event_is_branches(const struct event *e)
{
	return e->type == PROFIL_EVENT_BRANCHES;
}

bool event_is_hardware(const struct event *e)
{
	return e->type == PERF_TYPE_HARDWARE || event_is_branches(e);
}

int event_try(const struct event *e)
{
	struct perf_event_attr attr = { .type = e->type,
					.size = sizeof(attr),
					.config = e->config,
					.disabled = 1,
					.exclude_kernel = 1,
					.exclude_hv = 1 };
	int fd;

	if (event_is_off_cpu(e) || e->type == PROFIL_EVENT_UPROBE)
		return 0;
	if (event_is_branches(e)) {
		attr.sample_period = BRANCHES_TRY_PERIOD;
		branch_records_ask(&attr);
	}
	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

bool event_is_here(const struct event *e)
{
	int err = event_try(e);

	return !err || err == -EACCES || err == -EPERM;
}

const char *event_no_branches(int err)
{
	switch (err) {
	case -ENOENT:
	case -ENODEV:
		return "this machine has no hardware counters, as most virtual machines";
	case -EOPNOTSUPP:
	case -EINVAL:
		return "the CPU, or what emulates it, keeps no records of branches (Intel's, AMD's "
		       "from Zen 4 on and Arm's with BRBE do)";
	}
	return strerror(-err);
}

void events_each(void (*show)(void *ctx, const char *name, const struct event *e), void *ctx)
{
	for (size_t i = 0; i < COUNT(known); i++)
		show(ctx, known[i].name, &known[i].event);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* .../SYSTEM/NAME/id: tracepoints that perf can use have this file. */
static int walk(const char *top, void (*show)(void *ctx, const char *name, const struct event *e),
		void *ctx)
{
	char *const roots[] = { (char *)top, NULL };
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, by_name);
	FTSENT *e;

	if (!fts)
		return -errno;
	while ((e = fts_read(fts))) {
		const FTSENT *event = e->fts_parent;
		struct event found;
		char name[256];

		if (e->fts_level != 3 || strcmp(e->fts_name, "id") ||
		    event_read_id(&found, AT_FDCWD, e->fts_path))
			continue;
		snprintf(name, sizeof(name), "%s:%s", event->fts_parent->fts_name, event->fts_name);
		show(ctx, name, &found);
	}
	fts_close(fts);
	return 0;
}

int events_each_tracepoint(void (*show)(void *ctx, const char *name, const struct event *e),
			   void *ctx)
{
	__cleanup(closep) int folder = events_open_tracefs();
	char path[64];

	if (folder < 0)
		return folder;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/",
		 folder); /* the trailing slash follows the link */
	return walk(path, show, ctx);
}
