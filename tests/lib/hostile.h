/* hostile.h - shared by the hostile programs: a client of the protocol, the harness's signals */
#ifndef PROFIL_TEST_HOSTILE_H
#define PROFIL_TEST_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/proto.h"

/*
 * A hostile program attacks the daemon at PROFIL_SOCKET from its start until its standard input
 * ends. It prints "under way" once the attack has its full effect, and may print "result NAME
 * NUMBER" lines before it exits with status 0. Status 77 and a line "skip REASON" say that the
 * machine does not let the attack happen.
 */
void attack_under_way(void);
bool attack_over(void);
void attack_result(const char *name, long long number);
void attack_skip(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Exits with status 1 after "@what: errno's text" on standard error. */
void attack_fail(const char *what) __attribute__((noreturn));

/* Waits until standard input ends, or for at most @ms if that is not negative. */
void attack_wait(int ms);

/* Kills and reaps the remaining children. */
void attack_end_children(void);

/* fork() whose child dies with its parent. */
pid_t attack_fork(void);

/* The user of an attack that root starts because it needs preparation by root. */
#define ATTACKER 60001

/* Becomes user @uid for good and dumpable, as after a login. */
void attack_become(uid_t uid);

uint64_t now_ns(void);

/* Raises the soft limit of @resource to the hard one and returns it. */
unsigned long raise_limit(int resource);

/* Connects. Returns the socket, or -1 with errno. */
int peer_connect(void);

/* Connects and takes the HELLO. Returns the socket, or -1: the daemon refuses, or does not answer
 * for 20 s. */
int peer_dial(struct profil_msg_hello *hello);

/* No reply: the daemon has closed the connection, or did not answer for 20 s. */
#define PEER_CLOSED 255

/* Sends a request and returns the errno of its reply, or PEER_CLOSED. */
int peer_ask(int sock, const struct profil_header *h, const int *fds, unsigned int nfds,
	     struct profil_msg_reply *reply);

/*
 * A START of @nregions regions of @nbins counters each, all into the buffer @buf, with the cookie
 * of @hello at @cookie. Sends it; the reply is left to peer_reply().
 */
int peer_send_start(int sock, const struct profil_msg_hello *hello,
		    struct profil_cookie_area *cookie, void *buf, unsigned int nregions,
		    uint32_t nbins);
int peer_reply(int sock, struct profil_msg_reply *reply);

/* Requests an attachment to @pidfd; returns the errno of the reply, or PEER_CLOSED. */
int peer_observe(int sock, int pidfd, int maps, uint64_t period_ns, bool inherit);

/* The same for a process given by its number. */
int peer_observe_pid(int sock, pid_t pid, uint64_t period_ns, bool inherit);

/*
 * Requests an attachment with a table of @places places, to all processes of user @uid or, with
 * @uid -1, to processes to be added. Returns the errno of the reply, or PEER_CLOSED.
 */
int peer_observe_places(int sock, uint32_t places, uint64_t period_ns, int64_t uid);

/* Requests the machine's profile; returns the errno of the reply, or PEER_CLOSED. */
int peer_observe_machine(int sock);

/* The pid of the daemon, from its STATUS; 0: no reply. */
pid_t peer_daemon(void);

/* Finds the profile of process @pid in the daemon's LIST. */
bool peer_find(pid_t pid, struct profil_msg_profile *out);

#endif
