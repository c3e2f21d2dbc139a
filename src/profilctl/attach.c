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
#include "procfs.h"
#include "verb.h"
#include "watch.h"

/* Says why @pid can't be profiled, if it can't. */
static int check(pid_t pid)
{
	pid_t leader = procfs_leader(pid);
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
	if (procfs_is_kernel_thread(pid)) {
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

/* Nothing is attached to until all can be. */
static int parse_pids(pid_t *pids, const struct options *o)
{
	int status = CTL_OK;

	for (int i = 0; i < o->argc && !status; i++)
		status = options_pid(&pids[i], o->argv[i]) ? CTL_USAGE : CTL_OK;
	for (int i = 0; i < o->argc && !status; i++) {
		status = check(pids[i]);
		for (int k = 0; k < i && !status; k++) {
			if (pids[k] == pids[i]) {
				log_err("process %d is named twice", (int)pids[i]);
				status = CTL_USAGE;
			}
		}
	}
	return status;
}

static bool is_selective(const struct procfs_select *s)
{
	return s->comm || s->exe || s->cgroup || s->unit;
}

/* Those that are named, or those that the options select. The caller frees them. */
static int choose(pid_t **pids, size_t *n, const struct options *o)
{
	int err;

	*n = (size_t)o->argc;
	if (is_selective(&o->select) == (o->argc > 0)) {
		log_err("attach: %s; 'profilctl attach PID...'",
			o->argc ? "processes are named, or selected by an option"
				: "no process given");
		return CTL_USAGE;
	}
	if (o->argc) {
		*pids = calloc((size_t)o->argc, sizeof(**pids));
		return *pids ? parse_pids(*pids, o) : CTL_ERROR;
	}
	err = procfs_find(pids, n, &o->select);
	if (err < 0) {
		log_err("cannot look for processes: %s", strerror(-err));
		return CTL_ERROR;
	}
	if (*n)
		return CTL_OK;
	log_err("no process is such; see ps(1), and for cgroups systemd-cgls(1)");
	return CTL_GONE;
}

/* Of those that an option selects, some may have gone since, and some may be others'. */
static int attach_all(struct watch *w, const pid_t *pids, size_t n)
{
	bool selected = is_selective(&w->options->select);
	int status = CTL_OK;

	for (size_t i = 0; i < n && !status; i++) {
		if (selected)
			watch_try(w, pids[i], false);
		else
			status = watch_attach(w, pids[i], false);
	}
	/* Where none could be, one of them says why. */
	if (selected && !w->nsessions)
		status = watch_attach(w, pids[0], false);
	return status;
}

int verb_attach(const struct options *o)
{
	__cleanup(freep) pid_t *pids = NULL;
	struct watch w;
	size_t n;
	int status;

	status = choose(&pids, &n, o);
	if (status)
		return status;
	status = watch_init(&w, o);
	if (!status)
		status = attach_all(&w, pids, n);
	if (!status) {
		w.profile->command = procfs_command(w.sessions[0].pid);
		watch_run(&w);
		status = watch_finish(&w);
	}
	watch_fini(&w);
	return status;
}
