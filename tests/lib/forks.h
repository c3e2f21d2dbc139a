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

#endif
