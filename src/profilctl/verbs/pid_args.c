/* pid_args.c - the process ids on a command line */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/log.h"

#include "pid_args.h"
#include "symbols/proc/procfs.h"
#include "verb.h"

/* A procfs mounted with hidepid has no folder of a process that another user runs. */
static bool is_hidden(pid_t pid)
{
	return !kill(pid, 0) || errno == EPERM;
}

/* Prints why @pid cannot be profiled, if so. Returns an enum ctl_status. */
static int check(pid_t pid)
{
	pid_t leader = procfs_leader(pid);

	if (!leader && is_hidden(pid)) {
		log_err("/proc hides process %d: permission denied (it is mounted with hidepid: "
			"run as root, or as its user)",
			(int)pid);
		return CTL_DENIED;
	}
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
	return CTL_OK;
}

static int parse(pid_t *pids, const struct options *o)
{
	int status = CTL_OK;

	for (int i = 0; i < o->argc && !status; i++) {
		const char *option = options_stack_mode(o, o->argv[i]);

		if (option)
			log_err("'%s' is not a process id (perf's '--call-graph %s' is %s)",
				o->argv[i], o->argv[i], option);
		if (option || options_pid(&pids[i], o->argv[i]))
			status = CTL_USAGE;
	}
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

int named_pids(pid_t **pids, const struct options *o)
{
	*pids = calloc((size_t)o->argc, sizeof(**pids));
	if (*pids)
		return parse(*pids, o);
	log_err("no memory for %d process ids", o->argc);
	return CTL_ERROR;
}
