/* entry.h - entry and exit of every library call; access to the caller's pointers */
#ifndef PROFIL_LIBPROFIL_ENTRY_H
#define PROFIL_LIBPROFIL_ENTRY_H

#include <signal.h>
#include <stddef.h>

#define PROFIL_PUBLIC __attribute__((__visibility__("default")))

/*
 * A call holds the library's lock. All signals are blocked, so that a signal handler may call the
 * library as well, and cancellation is disabled.
 */
struct call {
	sigset_t mask;
	int cancel;
	int errno_before;
};

/* Returns 0, after which call_leave() is due, or -ETIMEDOUT if another thread's call does not end.
 */
int call_enter(struct call *c);
void call_leave(struct call *c);

/* After call_enter() has failed: sets errno and returns -1. */
int call_fail(int err);

/* Leaves and returns as a public function does: 0 with errno as it was, or -1 with errno @err. */
int call_return(struct call *c, int err);

/* Copies from or to the caller's memory: 0 or -EFAULT, never a signal. */
int call_copy_in(void *to, const void *from, size_t bytes);
int call_copy_out(void *to, const void *from, size_t bytes);

/* Zeroed memory for the duration of a call, or NULL; malloc() is not async-signal-safe. */
void *call_alloc(size_t bytes);
void call_free(void *p, size_t bytes);

#endif
