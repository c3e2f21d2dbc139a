/* pid_args.h - the process ids on a command line */
#ifndef PROFIL_PROFILCTL_VERBS_PID_ARGS_H
#define PROFIL_PROFILCTL_VERBS_PID_ARGS_H

#include <sys/types.h>

#include "profilctl/options/options.h"

/*
 * Reads the process ids into an array that the caller frees, and checks that all can be profiled
 * before any is attached to. Prints a message on failure and returns an enum ctl_status.
 */
int named_pids(pid_t **pids, const struct options *o);

#endif
