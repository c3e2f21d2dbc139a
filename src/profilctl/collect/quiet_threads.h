/* quiet_threads.h - the time of threads that had no CPU during a whole profile of waits */
#ifndef PROFIL_PROFILCTL_COLLECT_QUIET_THREADS_H
#define PROFIL_PROFILCTL_COLLECT_QUIET_THREADS_H

#include "profile/profile.h"

struct quiet_thread {
	pid_t pid;
	pid_t tid;
	__u64 turns; /* how often it has got a CPU */
};

/*
 * The kernel counts a wait when it ends, and those that have begun since it counts. Threads that
 * were waiting before and still do are found here: they have had no turn on a CPU meanwhile.
 */
struct quiet_threads {
	struct quiet_thread *thread;
	size_t n;
	__u64 since_ns;
};

/* Notes the threads of process @pid, which is now counted. */
void quiet_threads_note(struct quiet_threads *q, pid_t pid);

/*
 * Adds the time until @now_ns of those that have been asleep since to @p, as samples without a
 * stack. Returns 0 or -ENOMEM.
 */
int quiet_threads_read(const struct quiet_threads *q, struct profile *p, __u64 now_ns);

void quiet_threads_fini(struct quiet_threads *q);

#endif
