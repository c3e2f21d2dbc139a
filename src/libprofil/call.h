/* call.h - what every call into the library does first and last, and the caller's pointers */
#ifndef PROFIL_CALL_H
#define PROFIL_CALL_H

#include <signal.h>
#include <stddef.h>

#define PROFIL_PUBLIC __attribute__((__visibility__("default")))

/*
 * One thread at a time, undisturbed: signals are blocked, so that a handler may call the library
 * too, and cancellation is put off.
 */
struct call {
	sigset_t mask;
	int cancel;
	int errno_before;
};

/* Returns 0, or -ETIMEDOUT where another thread's call does not end; call_leave() follows a 0. */
int call_enter(struct call *c);
void call_leave(struct call *c);

/* Where call_enter() has failed: -1 and errno. */
int call_fail(int err);

/* Leaves, after @err, as a public function does: 0 with errno as it was, or -1 with errno set. */
int call_return(struct call *c, int err);

/* The caller's memory, which may not be there: 0 or -EFAULT, never a signal. */
int call_copy_in(void *to, const void *from, size_t bytes);
int call_copy_out(void *to, const void *from, size_t bytes);

/* Memory for the length of a call, all zeros; malloc() is not async-signal-safe. NULL: none. */
void *call_alloc(size_t bytes);
void call_free(void *p, size_t bytes);

#endif
