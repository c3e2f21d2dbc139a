/* entry.c - entry and exit of every library call; access to the caller's pointers */
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

#include "entry.h"
#include "process_area.h"

#define LOCK_WAIT_S 60

/*
 * The lock is a futex word on a page that a fork zeroes, so a child never inherits a lock that a
 * thread of its parent holds. Processes that share their memory exclude each other like threads.
 */
enum { UNLOCKED, LOCKED, LOCKED_AWAITED };

static int lock(void)
{
	__u32 *word = &fork_local()->lock, seen = UNLOCKED;
	struct timespec most = { .tv_sec = LOCK_WAIT_S };

	if (__atomic_compare_exchange_n(word, &seen, LOCKED, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
	while (__atomic_exchange_n(word, LOCKED_AWAITED, __ATOMIC_ACQUIRE) != UNLOCKED) {
		if (syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, LOCKED_AWAITED, &most, NULL, 0) <
			    0 &&
		    errno == ETIMEDOUT)
			return -ETIMEDOUT;
	}
	return 0;
}

static void unlock(void)
{
	__u32 *word = &fork_local()->lock;

	if (__atomic_exchange_n(word, UNLOCKED, __ATOMIC_RELEASE) == LOCKED_AWAITED)
		syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
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
 * The kernel copies, and returns EFAULT for a bad pointer, which would raise SIGSEGV here. If a
 * seccomp filter refuses the system call, memcpy() uses the caller's pointers directly.
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
