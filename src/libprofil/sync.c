/* sync.c - brings buffers up to date: in profil_sync(), and before a fork */
#include <pthread.h>

#include "daemon_call.h"
#include "entry.h"
#include "profil.h"
#include "seccomp_state.h"

PROFIL_PUBLIC int profil_sync(void)
{
	struct profil_msg_reply reply;
	struct call c;
	int err = call_enter(&c);

	if (err)
		return call_fail(err);
	return call_return(&c, request_sync(&reply));
}

/*
 * A fork child gets a copy of the buffer, and every manual promises it the counts so far. So the
 * buffer is brought up to date before the fork. That needs a connection, and a seccomp filter may
 * kill the process for socket(), although it has only called fork(). If a filter has been added
 * since the profile was started (socket() worked then), fork() does not contact the daemon: the
 * child's copy may lack the counts of one mirror interval, as after a raw clone(), which calls no
 * handler.
 *
 * Rejected: no synchronisation (every child would lack up to a tenth of a second), a connection
 * that stays open (libprofil keeps no fd), completion of the child's copy by the daemon (it cannot
 * tell counts before the fork from later ones).
 */
static void sync_before_fork(void)
{
	struct call c;

	if (request_mode() == REQUEST_OFF || call_enter(&c))
		return;
	if (!seccomp_changed())
		request_sync_before_fork();
	call_leave(&c);
}

/* Registered early: pthread_atfork() may call malloc(), which profil() must not. */
__attribute__((__constructor__)) static void watch_forks(void)
{
	pthread_atfork(sync_before_fork, NULL, NULL);
}
