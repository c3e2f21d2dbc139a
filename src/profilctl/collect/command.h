/* command.h - the command of a recording, with all processes that it starts */
#ifndef PROFIL_PROFILCTL_COLLECT_COMMAND_H
#define PROFIL_PROFILCTL_COLLECT_COMMAND_H

#include <stddef.h>
#include <sys/types.h>
#include <linux/types.h>

#include "self_setup.h"

/*
 * A process between profilctl and the command, the keeper, is the subreaper of what the command
 * starts, so that processes whose parent has ended are still known: their CPU time is counted, and
 * those that run on are named. It ends with the last of them, or with profilctl.
 */
struct command {
	pid_t pid;
	pid_t keeper;
	int gate;	 /* pipe: a byte makes the command begin */
	int verdict;	 /* pipe: the errno of a failed exec, or nothing */
	int end;	 /* pipe: the status of wait4(), when the command has ended */
	__u64 *ended_ns; /* shared with the keeper: CPU time of the processes that it has waited for
			  */
};

#define COMMAND_NONE                                 \
	{                                            \
		.gate = -1, .verdict = -1, .end = -1 \
	}

/* Forks the command's process, which waits before exec. Returns 0 or a negative errno. */
int command_open(struct command *c, const struct self *self, char **argv);

/* Lets the command begin. Returns 0 after exec, or its negative errno. */
int command_release(struct command *c);

/*
 * Waits until the command has ended, at most so long. Returns 1 and stores the status of wait4(),
 * or 0. A command that has not begun ends without exec.
 */
int command_wait(struct command *c, int *status, int timeout_ms);

/* CPU time of the command and of all processes that it has started. */
__u64 command_cpu_ns(const struct command *c);

/* Finds the processes below the command's that have not ended. Returns as descendants(). */
int command_running(const struct command *c, pid_t **out, size_t *n);

/* Ends the keeper: what still runs is init's then. */
void command_close(struct command *c);

#endif
