/* earlier_children.h - CPU time of children that attached processes had before */
#ifndef PROFIL_PROFILCTL_COLLECT_EARLIER_CHILDREN_H
#define PROFIL_PROFILCTL_COLLECT_EARLIER_CHILDREN_H

#include <stddef.h>
#include <sys/types.h>
#include <linux/types.h>

struct earlier_child {
	pid_t pid;
	__u64 cpu_ns; /* at the start */
};

/*
 * An attachment to a process has the children that it forks from then on. Those that exist already
 * are only in the profile if they are named as well.
 */
struct earlier_children {
	struct earlier_child *child;
	size_t n;
	/* Set by earlier_children_end(): */
	size_t nused;
	__u64 used_ns;
};

/* Notes the descendants of the processes @pids, except those that are in @pids themselves. */
void earlier_children_begin(struct earlier_children *e, const pid_t *pids, size_t n);

/* Adds up the CPU time since then of those that still run. */
void earlier_children_end(struct earlier_children *e);

void earlier_children_fini(struct earlier_children *e);

#endif
