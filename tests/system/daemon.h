/* daemon.h - a real profild for one test, and a client that speaks the bare protocol to it */
#ifndef PROFIL_TEST_DAEMON_H
#define PROFIL_TEST_DAEMON_H

#include <stddef.h>
#include <sys/types.h>

#include "core/proto.h"

/*
 * What fails in here fails the test, with the daemon's own words. A daemon that a test leaves
 * behind is ended by SIGTERM when the test's process ends.
 */
struct daemon {
	pid_t pid;
	int pidfd;
	char dir[64];	   /* holds what follows, and is the test's to use */
	char socket[96];   /* also in PROFIL_SOCKET while the daemon runs */
	char log[96];	   /* its stderr */
	char replay[96];   /* empty: it counts with the kernel */
	const char **args; /* the test's own */
};

/* How often, or how many: as the environment says, or @usual. */
unsigned long number_from_env(const char *variable, unsigned long usual);

/* Says whether this run's daemons count with the kernel (tests/run.sh). */
int daemon_over_kernel(void);

/*
 * Starts profild with @args (ends with NULL; NULL: none) and returns when it is ready. It replays
 * the lines @ticks; NULL: none, or over the kernel, the kernel's ticks. @args must outlive @d.
 */
void daemon_start(struct daemon *d, const char *ticks, const char **args);

/* Starts it once more, after daemon_kill() or daemon_stop(), on the same socket. */
void daemon_restart(struct daemon *d);

/* Ends it by SIGTERM; the exit status must be 0. */
void daemon_stop(struct daemon *d);

/* Ends it by SIGKILL. */
void daemon_kill(struct daemon *d);

/*
 * How many descriptors it has, as soon as that are no more than @most; after 10 s how many it is:
 * connections that we have closed are closed there when it comes round to them.
 */
unsigned int daemon_descriptors(const struct daemon *d, unsigned int most);

/* The memory of its own that it has, in KiB: the maps' is there from the beginning. */
long daemon_kib(const struct daemon *d);

/* So much more of it is no leak: a sanitizer keeps freed memory for a while. */
#ifdef __SANITIZE_ADDRESS__
#define DAEMON_KIB_MORE 262144
#else
#define DAEMON_KIB_MORE 64
#endif

/* Runs profild with @args, which should make it refuse; returns its exit status, stderr in @log. */
int daemon_refuses(const char **args, char *log, size_t bytes);

/* Connects to @d and takes its HELLO, into @hello if not NULL. Returns the socket. */
int client_open(const struct daemon *d, struct profil_msg_hello *hello);

/* Sends @bytes as they are, as one packet. Says whether the daemon still took it. */
int client_send(int sock, const void *packet, size_t bytes);

/*
 * Receives one packet into @buf and returns its size: 0 when the daemon has closed. A daemon that
 * does neither within 5 s fails the test.
 */
size_t client_recv(int sock, void *buf, size_t bytes);

/* Sends the message at @h and returns the errno in the daemon's REPLY, which goes to @reply. */
int client_ask(int sock, const struct profil_header *h, struct profil_msg_reply *reply);

/* Attaches to this process, at @period_ns; the errno. */
int client_attach(int sock, __u64 period_ns, struct profil_msg_reply *reply);

/*
 * The same two for a process that is no test: nothing in them fails one. The socket, or -1; the
 * errno in the daemon's REPLY, or CLIENT_CUT_OFF where it has hung up or says nothing for 20 s.
 */
#define CLIENT_CUT_OFF 255
int client_dial(const struct daemon *d, struct profil_msg_hello *hello);
int client_try(int sock, const struct profil_header *h, const int *fds, unsigned int nfds);

/* Asks for the daemon's STATUS on a connection of its own: it must be alive and answer. */
void client_status(const struct daemon *d, struct profil_msg_status *status);

#endif
