/* attach.c - profiles running processes */
#include "base/log.h"
#include "base/cleanup.h"

#include "pid_args.h"
#include "symbols/proc/procfs.h"
#include "verb.h"
#include "profilctl/collect/recorder.h"
#include "scope.h"

/* Says that no selected process runs yet: it may be a typing error. */
static void tell_none(const struct options *o)
{
	__cleanup(freep) pid_t *pids = NULL;
	const char *name = o->select.comm ? o->select.comm : o->select.exe;
	size_t n;

	if (name && procfs_find(&pids, &n, &o->select) == 0 && !n)
		log_notice("no process %s %s yet; those that start are profiled",
			   o->select.comm ? "is named" : "executes", name);
}

/* Finds the named processes, none with a selection by options; the caller frees them. */
static int choose(pid_t **pids, const struct options *o)
{
	bool selective = procfs_is_selective(&o->select) || o->everything;

	if (selective == (o->argc > 0)) {
		log_err("%s: %s; 'profilctl attach PID...'", o->verb,
			o->argc ? "processes are named, and selected by an option"
				: "no process given");
		return CTL_USAGE;
	}
	return selective ? CTL_OK : named_pids(pids, o);
}

static int observe(struct recorder *r, struct profil_msg_observe *m, const pid_t *pids)
{
	const struct options *o = r->options;
	int status = scope_event(m, r->profile, o);

	recorder_room(m);
	if (!status)
		status = recorder_observe(r, m, OPTIONS_RATE_DEFAULT);
	for (int i = 0; pids && i < o->argc && !status; i++)
		status = recorder_add(r, pids[i]);
	if (!status && pids)
		recorder_note_children(r);
	else if (!status)
		r->profile->command = scope_name(&r->asked, o);
	return status;
}

int verb_attach(const struct options *o)
{
	__cleanup(freep) pid_t *pids = NULL;
	struct profil_msg_observe m;
	struct recorder r;
	int status;

	status = choose(&pids, o);
	if (!status)
		status = scope_of(&m, o);
	if (status)
		return status;
	tell_none(o);
	status = recorder_init(&r, o);
	if (!status)
		status = observe(&r, &m, pids);
	if (!status) {
		recorder_run(&r);
		status = recorder_finish(&r);
	}
	recorder_fini(&r);
	return status;
}
