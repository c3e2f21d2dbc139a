/* attach.c - profiles running processes */
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/cleanup.h"

#include "pid_args.h"
#include "profilctl/proc/procfs.h"
#include "verb.h"
#include "profilctl/collect/recorder.h"
#include "scope.h"

/* Checks before connecting to a daemon that the selected file or cgroup exists. */
static int check_selection(const struct options *o)
{
	__cleanup(freep) pid_t *pids = NULL;
	struct profil_msg_observe m;
	size_t n;
	int err, status = scope_of(&m, o);

	if (status || o->select.cgroup || o->select.unit)
		return status;
	err = procfs_find(&pids, &n, &o->select);
	if (err < 0) {
		log_err("cannot look for processes: %s", strerror(-err));
		return CTL_ERROR;
	}
	if (!n)
		log_notice("no process %s %s yet; those that start are profiled",
			   o->select.comm ? "is named" : "executes",
			   o->select.comm ? o->select.comm : o->select.exe);
	return CTL_OK;
}

/* Finds the named processes, none with a selection by options; the caller frees them. */
static int choose(pid_t **pids, const struct options *o)
{
	bool selective = procfs_is_selective(&o->select) || o->all;

	if (selective == (o->argc > 0)) {
		log_err("%s: %s; 'profilctl attach PID...'", o->verb,
			o->argc ? "processes are named, and selected by an option"
				: "no process given");
		return CTL_USAGE;
	}
	if (o->all)
		return CTL_OK;
	return selective ? check_selection(o) : named_pids(pids, o);
}

static int observe(struct recorder *r, const pid_t *pids)
{
	const struct options *o = r->options;
	struct profil_msg_observe m;
	int status = scope_of(&m, o);

	if (!status)
		status = scope_event(&m, r->profile, o);
	recorder_room(&m);
	if (!status)
		status = recorder_observe(r, &m, OPTIONS_RATE_DEFAULT);
	for (int i = 0; pids && i < o->argc && !status; i++)
		status = recorder_add(r, pids[i]);
	if (!status && !pids)
		r->profile->command = scope_name(&r->asked, o);
	return status;
}

int verb_attach(const struct options *o)
{
	__cleanup(freep) pid_t *pids = NULL;
	struct recorder r;
	int status;

	status = choose(&pids, o);
	if (status)
		return status;
	status = recorder_init(&r, o);
	if (!status)
		status = observe(&r, pids);
	if (!status) {
		recorder_run(&r);
		status = recorder_finish(&r);
	}
	recorder_fini(&r);
	return status;
}
