/* exit_status.h - profilctl's exit statuses */
#ifndef PROFIL_PROFILCTL_UTIL_EXIT_STATUS_H
#define PROFIL_PROFILCTL_UTIL_EXIT_STATUS_H

enum ctl_status {
	CTL_OK,
	CTL_ERROR,     /* any other error */
	CTL_USAGE,     /* the command line is wrong */
	CTL_PARTIAL,   /* samples are missing from the report */
	CTL_DENIED,    /* permission denied by the daemon or the kernel */
	CTL_NO_DAEMON, /* no daemon answers, and none can be started */
	CTL_GONE,      /* no such process */
	CTL_GROWN,     /* diff --fail-on: a share has grown */

	/* record and run only: their status is otherwise the command's. */
	CTL_FAILED = 125,
	CTL_NOT_EXECUTABLE = 126,
	CTL_NOT_FOUND = 127,
};

#endif
