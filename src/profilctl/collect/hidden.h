/* hidden.h - CPU time of selected processes that the user may not observe */
#ifndef PROFIL_PROFILCTL_COLLECT_HIDDEN_H
#define PROFIL_PROFILCTL_COLLECT_HIDDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/proto.h"
#include "profilctl/profile/profile.h"

struct hidden_process {
	pid_t pid;
	__u64 cpu_ns;
};

/*
 * The daemon counts a process for a selection only if the kernel would let the user trace it. Not
 * so, for example, the sandboxed processes of browsers, which are not dumpable and use most of a
 * browser's CPU time. The daemon does not say which processes it leaves out. So this finds the
 * user's own processes that are selected, have used CPU time meanwhile, and have no samples.
 * Processes that have ended are not found.
 */
struct hidden {
	bool active;
	struct hidden_process *before; /* the user's processes at the start */
	size_t nbefore;
	struct hidden_process *used; /* the selected ones at the end, with the CPU time since */
	size_t nused;
};

/* Notes the user's processes, unless @asked names processes or the user is root. */
void hidden_begin(struct hidden *h, const struct profil_msg_observe *asked);

/* Notes how much CPU time each has used. @exe: the executable that @asked selects; NULL: none. */
void hidden_end(struct hidden *h, const struct profil_msg_observe *asked, const char *exe);

/* Sets @p->hidden and @p->hidden_ns; @p has all samples. */
void hidden_count(const struct hidden *h, struct profile *p);

void hidden_fini(struct hidden *h);

#endif
