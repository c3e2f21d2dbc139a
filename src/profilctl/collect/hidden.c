/* hidden.c - CPU time of selected processes that the user may not observe */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cleanup.h"

#include "hidden.h"
#include "profilctl/proc/cgroups.h"
#include "profilctl/proc/procfs.h"

/* Less CPU time may have no sample: 10 samples' worth, and the resolution of /proc/PID/stat. */
#define SEEN_TICKS 10
#define RESOLUTION_NS 20000000u

/* The processes of the user, with their CPU time; the caller frees them. NULL: none. */
static struct hidden_process *own_processes(size_t *n)
{
	struct procfs_select all = { 0 };
	__cleanup(freep) pid_t *pids = NULL;
	struct hidden_process *own;
	size_t npids;

	*n = 0;
	if (procfs_find(&pids, &npids, &all) < 0)
		return NULL;
	own = calloc(npids + 1, sizeof(*own));
	for (size_t i = 0; own && i < npids; i++) {
		if (procfs_uid(pids[i]) == geteuid())
			own[(*n)++] =
				(struct hidden_process){ pids[i], procfs_process_cpu_ns(pids[i]) };
	}
	return own;
}

void hidden_begin(struct hidden *h, const struct profil_msg_observe *asked)
{
	h->active = asked->scope != PROFIL_SCOPE_PROCESSES && geteuid() != 0;
	if (h->active)
		h->before = own_processes(&h->nbefore);
}

/* The kernel lets the user read the executable's path if it may trace the process, in most cases.
 */
static bool is_observable(pid_t pid)
{
	char path[64], target;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return readlink(path, &target, 1) >= 0;
}

/* The executable of a process that is not observable is known by its name only. */
static bool has_name_of(pid_t pid, const char *exe)
{
	const char *slash = strrchr(exe, '/');
	char comm[16], name[16];

	snprintf(name, sizeof(name), "%s", slash ? slash + 1 : exe);
	return !strcmp(procfs_comm(pid, comm, sizeof(comm)), name);
}

static bool is_selected(pid_t pid, const struct profil_msg_observe *asked, const char *exe,
			const char *cgroup)
{
	char comm[16];

	switch (asked->scope) {
	case PROFIL_SCOPE_USER:
		return true;
	case PROFIL_SCOPE_COMMAND:
		return !strcmp(procfs_comm(pid, comm, sizeof(comm)), asked->command);
	case PROFIL_SCOPE_EXE:
		return exe && has_name_of(pid, exe);
	case PROFIL_SCOPE_CGROUP:
		return cgroup && procfs_is_below(pid, cgroup);
	default:
		return false;
	}
}

/* The CPU time of @now since hidden_begin(). A process with less than then has the pid of another.
 */
static __u64 used_since(const struct hidden *h, const struct hidden_process *now)
{
	for (size_t i = 0; i < h->nbefore; i++) {
		if (h->before[i].pid == now->pid && h->before[i].cpu_ns <= now->cpu_ns)
			return now->cpu_ns - h->before[i].cpu_ns;
	}
	return now->cpu_ns;
}

void hidden_end(struct hidden *h, const struct profil_msg_observe *asked, const char *exe)
{
	struct cgroups cgroups = { 0 };
	const char *cgroup = NULL;
	size_t n = 0;

	if (!h->active)
		return;
	if (asked->scope == PROFIL_SCOPE_CGROUP)
		cgroup = cgroups_path(&cgroups, asked->cgroup);
	h->used = own_processes(&n);
	for (size_t i = 0; i < n; i++) {
		struct hidden_process now = h->used[i];

		if (is_observable(now.pid) || !is_selected(now.pid, asked, exe, cgroup))
			continue;
		now.cpu_ns = used_since(h, &now);
		h->used[h->nused++] = now;
	}
	cgroups_fini(&cgroups);
}

static bool has_samples(const struct profile *p, pid_t pid)
{
	for (size_t i = 1; i < p->ngroups; i++) {
		if (p->groups[i].pid == pid)
			return true;
	}
	return false;
}

void hidden_count(const struct hidden *h, struct profile *p)
{
	for (size_t i = 0; i < h->nused && !p->group_full; i++) {
		const struct hidden_process *used = &h->used[i];

		if (used->cpu_ns < SEEN_TICKS * p->tick_ns + RESOLUTION_NS ||
		    has_samples(p, used->pid))
			continue;
		p->hidden++;
		p->hidden_ns += used->cpu_ns;
	}
}

void hidden_fini(struct hidden *h)
{
	free(h->before);
	free(h->used);
	*h = (struct hidden){ 0 };
}
