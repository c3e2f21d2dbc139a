/* call.c - what every call into the library does first and last, and the caller's pointers */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "call.h"

#define LOCK_WAIT_S 60

/* The pid of who is inside, or 0. A fork child finds its parent's there and takes it over. */
static int inside;

/* A wait on @seen that another thread's leaving ends; 0 or -ETIMEDOUT. */
static int wait_outside(int seen)
{
	struct timespec most = { .tv_sec = LOCK_WAIT_S };

	if (syscall(SYS_futex, &inside, FUTEX_WAIT_PRIVATE, seen, &most, NULL, 0) < 0 &&
	    errno == ETIMEDOUT)
		return -ETIMEDOUT;
	return 0;
}

static int lock(void)
{
	int me = getpid();
	int seen = 0;
	int err;

	while (!__atomic_compare_exchange_n(&inside, &seen, me, 0, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		if (seen != me)
			continue; /* the fork's copy of a lock: nobody here holds it */
		err = wait_outside(seen);
		if (err)
			return err;
		seen = 0;
	}
	return 0;
}

static void unlock(void)
{
	__atomic_store_n(&inside, 0, __ATOMIC_RELEASE);
	syscall(SYS_futex, &inside, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

int call_enter(struct call *c)
{
	sigset_t all;
	int err;

	c->errno_before = errno;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &c->mask);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &c->cancel);

	err = lock();
	if (err) {
		pthread_setcancelstate(c->cancel, NULL);
		pthread_sigmask(SIG_SETMASK, &c->mask, NULL);
	}
	return err;
}

void call_leave(struct call *c)
{
	unlock();
	pthread_setcancelstate(c->cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &c->mask, NULL);
	errno = c->errno_before;
}

int call_fail(int err)
{
	errno = -err;
	return -1;
}

int call_return(struct call *c, int err)
{
	call_leave(c);
	return err ? call_fail(err) : 0;
}

/*
 * The kernel copies, and says EFAULT where a pointer of ours would raise a signal. Where a seccomp
 * filter forbids it, a bad pointer is the caller's own fault again.
 */
static int copy(void *to, const void *from, size_t bytes, int out)
{
	struct iovec ours = { out ? (void *)(unsigned long)from : to, bytes };
	struct iovec theirs = { out ? to : (void *)(unsigned long)from, bytes };
	ssize_t n = out ? process_vm_writev(getpid(), &ours, 1, &theirs, 1, 0)
			: process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0);

	if (n >= 0)
		return (size_t)n == bytes ? 0 : -EFAULT;
	if (errno == EFAULT)
		return -EFAULT;
	memcpy(to, from, bytes);
	return 0;
}

int call_copy_in(void *to, const void *from, size_t bytes)
{
	return copy(to, from, bytes, 0);
}

int call_copy_out(void *to, const void *from, size_t bytes)
{
	return copy(to, from, bytes, 1);
}

void *call_alloc(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void call_free(void *p, size_t bytes)
{
	if (p)
		munmap(p, bytes);
}
