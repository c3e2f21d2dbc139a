/* named.h - the processes that a command line names */
#ifndef PROFIL_NAMED_H
#define PROFIL_NAMED_H

#include <sys/types.h>

#include "options.h"

/*
 * Reads the process ids that stand behind the options, into an array that the caller frees, and
 * sees that all of them can be profiled: nothing is attached to until all can be. Returns an enum
 * ctl_status, after saying what is wrong.
 */
int named_pids(pid_t **pids, const struct options *o);

#endif
