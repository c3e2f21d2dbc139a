/* attached_children.h - the CPU time of children of attached processes */
#ifndef PROFIL_PROFILCTL_COLLECT_ATTACHED_CHILDREN_H
#define PROFIL_PROFILCTL_COLLECT_ATTACHED_CHILDREN_H

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
struct attached_children {
	pid_t *attached;
	size_t nattached;
	struct earlier_child *earlier;
	size_t n;
	/* Set by attached_children_end(): */
	size_t nearlier;  /* earlier ones that have used CPU time since the start */
	__u64 earlier_ns; /* that time */
	__u64 later_ns;	  /* CPU time of the other ones that still run */
};

/* Notes the descendants of the processes @pids, except those that are in @pids themselves. */
void attached_children_begin(struct attached_children *c, const pid_t *pids, size_t n);

/* Adds up the CPU time of those that still run. */
void attached_children_end(struct attached_children *c);

void attached_children_fini(struct attached_children *c);

#endif
