/* attach.c - profiles a process that runs already */
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/scope.h"

#include "named.h"
#include "procfs.h"
#include "verb.h"
#include "watch.h"

/* Finds out whether anybody is selected, before a daemon is asked. */
static int check_selection(const struct procfs_select *select)
{
	__cleanup(freep) pid_t *pids = NULL;
	size_t n;
	int err = procfs_find(&pids, &n, select);

	if (err < 0) {
		log_err("cannot look for processes: %s", strerror(-err));
		return CTL_ERROR;
	}
	if (n)
		return CTL_OK;
	log_err("no process is such; see ps(1), and for cgroups systemd-cgls(1)");
	return CTL_GONE;
}

/* Those that are named; the caller frees them. None, where the options select. */
static int choose(pid_t **pids, const struct options *o)
{
	bool selective = procfs_is_selective(&o->select);

	if (selective == (o->argc > 0)) {
		log_err("attach: %s; 'profilctl attach PID...'",
			o->argc ? "processes are named, or selected by an option"
				: "no process given");
		return CTL_USAGE;
	}
	if (selective)
		return check_selection(&o->select);
	return named_pids(pids, o);
}

static int attach_all(struct watch *w, const pid_t *pids)
{
	int status = CTL_OK;

	if (!pids)
		return watch_select(w);
	for (int i = 0; i < w->options->argc && !status; i++)
		status = watch_attach(w, pids[i], false);
	return status;
}

/* Where nobody has come, the profile is called by what was asked for. */
static int finish(struct watch *w)
{
	const struct procfs_select *s = &w->options->select;

	if (!w->profile->command)
		w->profile->command = strdup(s->comm   ? s->comm
					     : s->exe  ? s->exe
					     : s->unit ? s->unit
						       : s->cgroup);
	return watch_finish(w);
}

int verb_attach(const struct options *o)
{
	__cleanup(freep) pid_t *pids = NULL;
	struct watch w;
	int status;

	status = choose(&pids, o);
	if (status)
		return status;
	status = watch_init(&w, o);
	if (!status)
		status = attach_all(&w, pids);
	if (!status) {
		watch_run(&w);
		status = finish(&w);
	}
	watch_fini(&w);
	return status;
}
