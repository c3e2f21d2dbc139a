/* fake_daemon.h - a daemon inside a unit test, with scripted answers */
#ifndef PROFIL_TEST_FAKE_DAEMON_H
#define PROFIL_TEST_FAKE_DAEMON_H

#include <pthread.h>

#include "core/proto.h"

/* What it does with a connection. */
enum manner { ANSWERS, REFUSES, HANGS_UP, RAVES, NEVER_ANSWERS, STALLS };

extern char fake_path[64]; /* of its socket, also in PROFIL_SOCKET */

extern struct fake_daemon {
	enum manner manner[8]; /* of each connection in turn; the last one of all that follow */
	int listener;
	unsigned int connections;
	unsigned int closed;	       /* ... of them, by the daemon */
	pthread_t client;	       /* gets one SIGUSR1 before its answer, if it is set */
	int go[2];		       /* STALLS: until a byte comes */
	struct profil_msg_reply reply; /* what it answers; errors of REFUSES apart */

	/* The last request. */
	struct profil_msg_start start;
	unsigned int type;
	unsigned int messages;
	unsigned int regions;
	unsigned int disorder;
	unsigned char cookie[PROFIL_COOKIE_BYTES]; /* given with the last HELLO */
} fake;

/* A suite's .init and .fini. */
void fake_setup(void);
void fake_clean(void);

/* Begins to listen. Two connections can be open at a time. */
void fake_listen(enum manner first, enum manner second, enum manner rest);

#endif
