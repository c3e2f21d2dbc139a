/* thread.h - threads with small stacks */
#ifndef PROFIL_BASE_THREAD_H
#define PROFIL_BASE_THREAD_H

#include <pthread.h>

#define THREAD_STACK (1u << 20)

/*
 * Starts a thread, with a stack of 1 MiB. Returns 0 or a negative errno. The C library keeps the
 * stacks of ended threads, of up to 40 MiB in all. It unmaps the others, and aborts where it
 * cannot: five stacks of the usual size are too many.
 */
static inline int thread_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	err = pthread_attr_setstacksize(&attr, THREAD_STACK);
	if (!err)
		err = pthread_create(thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return -err;
}

#endif
