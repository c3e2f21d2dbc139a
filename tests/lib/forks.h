/* forks.h - profiled processes that fork, share memory, lose their leader, and end */
#ifndef PROFIL_TEST_FORKS_H
#define PROFIL_TEST_FORKS_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>

#include "daemon.h"
#include "kernel_ticks.h"

/* fork() that must succeed. */
pid_t fork_now(void);
/* Waits for the end of @pid, whose exit status must be 0. */
void reap(pid_t pid);
/* Maps memory that forks share. */
void *forks_memory(size_t bytes);

/* ticks_profile() that must succeed. */
static inline void forks_profile(unsigned short buf[LOOPS])
{
	cr_assert_eq(ticks_profile(buf), 0, "profil: %s", strerror(errno));
}

/* --- one fork: in each of these, processes of @d work in loops of their own by @way ----------- */

/* Both have a buffer in shared memory, and one loop in common. */
void forks_share_a_buffer(const struct daemon *d, const struct ticks_way *way);

/* The daemon is stopped until the child's first request is queued. */
void forks_stop_the_daemon(const struct daemon *d, const struct ticks_way *way);

/* The child has no counters until the daemon makes a chunk for them. */
void forks_fill_a_chunk(const struct daemon *d, const struct ticks_way *way);

void forks_stop_in_the_child(const struct daemon *d, const struct ticks_way *way);

/* Two forks whose parents exit, with setsid(), as many daemons do. */
void forks_daemonize(const struct daemon *d, const struct ticks_way *way);

/* --- shared memory ---------------------------------------------------------------------------- */

void forks_vfork(const struct daemon *d, const struct ticks_way *way);
/* IRIX's sproc() */
void forks_sproc(const struct daemon *d, const struct ticks_way *way);
/* The process that was forked with clone(CLONE_VM) counts after the end of the other one. */
void forks_orphan_in_one_memory(const struct daemon *d, const struct ticks_way *way);

/* --- threads ---------------------------------------------------------------------------------- */

void forks_without_leader(const struct daemon *d, const struct ticks_way *way);
/* Starts the profile and forks after the end of the main thread. */
void forks_start_without_leader(const struct daemon *d, const struct ticks_way *way);

/*
 * A process with working threads forks children that work one tenth of a spell. Returns the ticks
 * of all children since their forks, and their CPU time.
 */
unsigned long forks_of_threads(const struct ticks_way *way, struct loop_time *all);

#endif
