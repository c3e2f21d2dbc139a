/* daemon.h - a real profild for one test, and a client of its protocol */
#ifndef PROFIL_TEST_DAEMON_H
#define PROFIL_TEST_DAEMON_H

#include <stddef.h>
#include <sys/types.h>

#include "core/proto.h"

/*
 * A failure in these functions fails the test, with the daemon's log. A daemon that is still
 * running when the test's process ends gets SIGTERM.
 */
struct daemon {
	pid_t pid;
	int pidfd;
	char dir[64];	   /* of the files below; the test may use it as well */
	char socket[96];   /* also in PROFIL_SOCKET while the daemon runs */
	char log[96];	   /* its stderr */
	char replay[96];   /* the file of ticks; empty: it counts with the kernel */
	const char **args; /* as the test gave them */
};

/* The number in the environment variable @variable, or @usual. */
unsigned long number_from_env(const char *variable, unsigned long usual);

/* Says whether this run's daemons count with the kernel (tests/run.sh). */
int daemon_over_kernel(void);

/*
 * Starts profild with @args (ends with NULL; NULL: none) and returns when it is ready. It replays
 * the lines @ticks; if NULL, it counts with the kernel, or over replay has no ticks. @args must
 * outlive @d.
 */
void daemon_start(struct daemon *d, const char *ticks, const char **args);

/*
 * Defines the Criterion suite @name: each test has a daemon d of its own, which is started with the
 * arguments that follow, counts with the kernel, and is stopped at the end of the test.
 */
#define DAEMON_SUITE(name, ...)                                    \
	static struct daemon d;                                    \
	static void start(void)                                    \
	{                                                          \
		static const char *args[] = { __VA_ARGS__, NULL }; \
                                                                   \
		daemon_start(&d, NULL, args);                      \
	}                                                          \
	static void stop(void)                                     \
	{                                                          \
		daemon_stop(&d);                                   \
	}                                                          \
	TestSuite(name, .init = start, .fini = stop)

/* Starts it again on the same socket, after daemon_kill() or daemon_stop(). */
void daemon_restart(struct daemon *d);

/* Ends it by SIGTERM; the exit status must be 0. */
void daemon_stop(struct daemon *d);

/* Ends it by SIGKILL. */
void daemon_kill(struct daemon *d);

/* The path of @name in its directory; valid until the second next call. */
const char *daemon_file(const struct daemon *d, const char *name);

/*
 * Waits until it has no more than @most descriptors: the daemon closes connections that the test
 * has closed some time later. Returns their number.
 */
unsigned int daemon_descriptors(const struct daemon *d, unsigned int most);

/* Its anonymous memory in KiB, without BPF maps. */
long daemon_kib(const struct daemon *d);

/* A growth by so much is no leak: sanitizers keep freed memory for a while. */
#ifdef __SANITIZE_ADDRESS__
#define DAEMON_KIB_MORE 262144
#else
#define DAEMON_KIB_MORE 64
#endif

/*
 * Runs profild with @args, with which it must refuse to start, on a socket of its own unless they
 * name one; returns its exit status, and its stderr in @log.
 */
int daemon_refuses(const char **args, char *log, size_t bytes);

/* Connects to @d and receives its HELLO, into @hello if not NULL. Returns the socket. */
int client_open(const struct daemon *d, struct profil_msg_hello *hello);

/* Sends @bytes unchanged as one packet. Returns 0 when the daemon has closed the connection. */
int client_send(int sock, const void *packet, size_t bytes);

/*
 * Receives one packet into @buf and returns its size, 0 when the daemon has closed the connection.
 * Neither within a minute fails the test, and so does an end so late that the daemon may have
 * closed the connection only because its client was silent.
 */
size_t client_recv(int sock, void *buf, size_t bytes);

/* Sends the message @h and returns the errno in the REPLY, which goes to @reply if not NULL. */
int client_ask(int sock, const struct profil_header *h, struct profil_msg_reply *reply);

/*
 * client_open() and client_ask() for a child of the test, without assertions: the socket, or -1;
 * the errno in the REPLY, or CLIENT_CUT_OFF when the daemon closes the connection or is silent for
 * 20 s.
 */
#define CLIENT_CUT_OFF 255
int client_dial(const struct daemon *d, struct profil_msg_hello *hello);
int client_try(int sock, const struct profil_header *h, const int *fds, unsigned int nfds);

/*
 * Also without assertions: start an attachment to processes with a small table, and close the
 * table's descriptor; add the process that @fds prove.
 */
int client_observe(int sock, __u64 period_ns);
int client_add(int sock, const int *fds, unsigned int nfds);

/* Asks for STATUS on a new connection; the daemon must answer. */
void client_status(const struct daemon *d, struct profil_msg_status *status);

#endif
