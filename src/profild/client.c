/* client.c - one connection: its messages, and its end */
#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client.h"
#include "core/log.h"
#include "core/scope.h"
#include "core/wire.h"
#include "memory.h"
#include "policy.h"
#include "request.h"
#include "session.h"

/* Who connects and then says nothing is hung up on after so long. */
#define SILENCE_US (10 * 1000000ULL)

/* Requests that are read in a row before somebody else has a turn. */
#define TURN_REQUESTS 16

void client_close(struct client *c)
{
	struct client **place = &c->daemon->clients;

	while (*place && *place != c)
		place = &(*place)->next;
	if (*place)
		*place = c->next;
	if (c->session)
		session_end(c->session);
	memory_close(c->memory);
	closep(&c->pidfd);
	sd_event_source_unref(c->source);
	sd_event_source_unref(c->deadline);
	closep(&c->sock);
	free(c->pending);
	free(c->region);
	free(c->events);
	free(c);
}

int client_send(struct client *c, const struct profil_header *h, const int *fds, unsigned int nfds)
{
	int err = wire_send(c->sock, h, fds, nfds);

	return err == -EAGAIN ? -ENOBUFS : err; /* it asks and does not read: nothing to wait for */
}

/*
 * Says whether @sender is the process that connected. That one lives on, so no other has had its
 * number since we took hold of it, which was before it could say anything.
 */
static bool is_peer(const struct client *c, pid_t sender)
{
	struct pollfd gone = { .fd = c->pidfd, .events = POLLIN };

	return sender == c->peer.pid && poll(&gone, 1, 0) == 0;
}

/* One message; 0 where there was one. */
static int receive(struct client *c)
{
	static union {
		struct profil_header h;
		uint8_t space[PROFIL_MSG_MAX];
	} msg;
	int fds[2];
	unsigned int nfds = 2;
	pid_t sender;
	int err = wire_recv_from(c->sock, &msg, sizeof(msg), fds, &nfds, &sender);

	if (err)
		return err;
	err = is_peer(c, sender) ? request_handle(c, &msg.h, fds, nfds) : -EPERM;
	while (nfds)
		close(fds[--nfds]);
	return err;
}

static int on_ready(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct client *c = userdata;
	int err = 0;

	(void)source;
	(void)fd;
	if (revents & EPOLLOUT)
		client_flush(c, false);
	for (int i = 0; !err && i < TURN_REQUESTS; i++)
		err = receive(c);
	if (err && err != -EAGAIN)
		client_close(c);
	return 0;
}

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source;
	(void)usec;
	client_close(userdata);
	return 0;
}

static int client_greet(struct client *c)
{
	struct profil_msg_hello hello = { 0 };

	if (getrandom(c->cookie, sizeof(c->cookie), 0) != sizeof(c->cookie))
		return -EIO;
	wire_header(&hello.h, PROFIL_MSG_HELLO, sizeof(hello), 0, 0);
	memcpy(hello.cookie, c->cookie, sizeof(hello.cookie));
	return wire_send(c->sock, &hello.h, NULL, 0);
}

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Kernels before 6.5 know the peer by its number only, which may be another's by now. */
static int peer_pidfd(const struct client *c)
{
	socklen_t len = sizeof(int);
	int pidfd;

	if (getsockopt(c->sock, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0)
		return pidfd;
	if (errno != ENOPROTOOPT)
		return -errno;
	pidfd = (int)syscall(SYS_pidfd_open, c->peer.pid, 0);
	return pidfd < 0 ? -errno : pidfd;
}

/* Says whether the peer has said, or closed, something before it was greeted. */
static bool is_early(const struct client *c)
{
	char byte;

	return recv(c->sock, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

/*
 * Takes hold of the process that connects, and of the memory that it has now, before it learns the
 * cookie: so what is found with the cookie in it can be no other process, and no image that it
 * execs afterwards. Whoever speaks too early may be dead already, and its number another's; what
 * comes with that number after this comes from who has it now.
 */
static int client_identify(struct client *c)
{
	const int on = 1;

	if (setsockopt(c->sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return -errno;
	c->pidfd = peer_pidfd(c);
	if (c->pidfd < 0)
		return c->pidfd;
	if (memory_open(&c->memory, c->peer.pid) < 0)
		c->memory = NULL; /* a reader has no need of it */
	return is_early(c) ? -EPROTO : 0;
}

/* Who it is, and whether he has too many connections already: before any more is done for him. */
static int check_connections(struct client *c)
{
	socklen_t len = sizeof(c->peer);
	uint32_t own = 0, all = 0;

	if (getsockopt(c->sock, SOL_SOCKET, SO_PEERCRED, &c->peer, &len) < 0)
		return -errno;
	for (const struct client *other = c->daemon->clients; other; other = other->next) {
		all++;
		own += other->peer.uid == c->peer.uid;
	}
	return policy_connect(c->daemon, c->peer.uid, own, all);
}

/* Takes over @sock, on failure too. */
static int client_open(struct profild *d, int sock)
{
	struct client *c = calloc(1, sizeof(*c));
	int err;

	if (!c) {
		close(sock);
		return -ENOMEM;
	}
	c->daemon = d;
	c->sock = sock;
	c->pidfd = -1;
	err = check_connections(c);
	if (!err)
		err = client_identify(c);
	if (!err)
		err = client_greet(c);
	if (!err)
		err = sd_event_add_io(d->event, &c->source, sock, EPOLLIN, on_ready, c);
	if (err >= 0)
		err = sd_event_add_time_relative(d->event, &c->deadline, CLOCK_MONOTONIC,
						 SILENCE_US, SILENCE_US / 10, on_deadline, c);
	if (err < 0) {
		client_close(c);
		return err;
	}
	c->next = d->clients;
	d->clients = c;
	return 0;
}

int client_accept(struct profild *d, int listener)
{
	int sock = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (sock < 0)
		return -errno;
	return client_open(d, sock);
}

/* Half of the socket is for answers: who has not read all events yet may ask all the same. */
static bool has_room(const struct client *c)
{
	int queued, most;
	socklen_t len = sizeof(most);

	return ioctl(c->sock, SIOCOUTQ, &queued) == 0 &&
	       getsockopt(c->sock, SOL_SOCKET, SO_SNDBUF, &most, &len) == 0 && queued < most / 2;
}

static void await_room(struct client *c, bool awaited)
{
	if (c->awaits_room != awaited)
		sd_event_source_set_io_events(c->source, awaited ? EPOLLIN | EPOLLOUT : EPOLLIN);
	c->awaits_room = awaited;
}

/* A socket holds a hundred messages or so. Where it has no room, events wait, up to one message. */
void client_flush(struct client *c, bool last)
{
	struct profil_msg_events *e = c->events;
	unsigned int n = e ? e->h.count : 0;
	int err;

	if (!n)
		return;
	wire_header(&e->h, PROFIL_MSG_EVENTS, sizeof(*e), sizeof(e->event[0]), n);
	err = last || has_room(c) ? wire_send(c->sock, &e->h, NULL, 0) : -EAGAIN;
	if (err == -EAGAIN && !last && n < PROFIL_MSG_EVENT_MAX) {
		await_room(c, true);
		return;
	}
	for (unsigned int i = 0; err && i < n; i++)
		c->unsent += e->event[i].kind == PROFIL_EVENT_RAW;
	e->h.count = 0;
	await_room(c, false);
}

void client_event(struct client *c, const struct profil_event *event)
{
	struct profil_msg_event *out;

	if (!c->events) {
		c->events = calloc(1, sizeof(*c->events) + PROFIL_MSG_EVENT_MAX * sizeof(*out));
		if (!c->events) {
			c->unsent += event->kind == PROFIL_EVENT_RAW;
			return;
		}
	}
	out = &c->events->event[c->events->h.count++];
	out->pc = event->pc;
	out->tgid = event->tgid;
	out->kind = event->kind;
	out->execs = event->life;
	out->tid = event->tid;
	if (c->events->h.count == PROFIL_MSG_EVENT_MAX)
		client_flush(c, false);
}
