/* profil.c - profil and sprofil with glibc's ABI, and profil_sync */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>

#include "profil.h"
#include "call.h"
#include "plain.h"
#include "request.h"
#include "sprofil.h"

/*
 * glibc's <unistd.h> says nonnull, yet NULL is how one stops: under a name of its own the compiler
 * keeps the test.
 */
PROFIL_PUBLIC int profil_glibc(unsigned short *buf, size_t bytes, size_t offset,
			       unsigned int scale) __asm__("profil");

PROFIL_PUBLIC int sprofil(struct prof *profp, int profcnt, struct timeval *tvp, unsigned int flags);

int profil_glibc(unsigned short *buf, size_t bytes, size_t offset, unsigned int scale)
{
	return plain_profil(&dialects[DIALECT_GLIBC], buf, bytes, offset, buf ? scale : 0);
}

int sprofil(struct prof *profp, int profcnt, struct timeval *tvp, unsigned int flags)
{
	struct profil_msg_reply reply;
	struct call c;
	int err = call_enter(&c);

	if (err)
		return call_fail(err);
	if (!profcnt)
		err = request_stop(&reply);
	else
		err = sprofil_start(SPROFIL_GLIBC, profp, profcnt, tvp, flags);
	return call_return(&c, err);
}

PROFIL_PUBLIC int profil_sync(void)
{
	struct profil_msg_reply reply;
	struct call c;
	int err = call_enter(&c);

	if (err)
		return call_fail(err);
	return call_return(&c, request_sync(&reply));
}

/* What was counted before a fork belongs into the buffer of which the child gets a copy. */
static void sync_before_fork(void)
{
	struct call c;

	if (request_mode() == REQUEST_OFF || call_enter(&c))
		return;
	request_sync_before_fork();
	call_leave(&c);
}

/* Registered early, since pthread_atfork() may call malloc(), and profil() may not. */
__attribute__((__constructor__)) static void watch_forks(void)
{
	pthread_atfork(sync_before_fork, NULL, NULL);
}
