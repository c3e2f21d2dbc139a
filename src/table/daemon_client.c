/* daemon_client.c - a connection to the daemon: requests and replies */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"

#include "daemon_client.h"

/* On a busy machine the verifier alone takes 10 s, when an observer is the first of its kind. */
#define ANSWER_TIMEOUT_MS 30000

struct client {
	int sock;
	union {
		struct profil_header h;
		struct profil_msg_reply reply;
		char space[PROFIL_MSG_MAX];
	} in;
};

/* Waits until the daemon is ready for @events. */
static int wait_for(const struct client *c, short events)
{
	struct pollfd p = { .fd = c->sock, .events = events };
	int n;

	do {
		n = poll(&p, 1, ANSWER_TIMEOUT_MS);
	} while (n < 0 && errno == EINTR);
	return n > 0 ? 0 : n ? -errno : -ETIMEDOUT;
}

static int send_all(struct client *c, const struct profil_header *h, const int *fds,
		    unsigned int nfds)
{
	int err;

	while ((err = wire_send(c->sock, h, fds, nfds)) == -EAGAIN) {
		err = wait_for(c, POLLOUT);
		if (err < 0)
			return err;
	}
	return err == -EPIPE || err == -ECONNRESET ? -ENODATA : err;
}

/* Waits for a message. Returns its type, or a negative errno; *@nfds and @fds as in wire_recv(). */
static int await(struct client *c, int *fds, unsigned int *nfds)
{
	unsigned int room = nfds ? *nfds : 0;
	int err;

	for (;;) {
		if (nfds)
			*nfds = room;
		err = wire_recv(c->sock, &c->in, sizeof(c->in), fds, nfds);
		if (!err)
			return c->in.h.type;
		if (err != -EAGAIN)
			return err == -ECONNRESET || err == -EPIPE ? -ENODATA : err;
		err = wait_for(c, POLLIN);
		if (err < 0)
			return err;
	}
}

/* Receives a reply with up to @nfds descriptors in @fd; missing ones are -1. */
static int await_reply(struct client *c, struct profil_msg_reply *reply, int *fd, unsigned int nfds)
{
	int came[2] = { -1, -1 };
	unsigned int ncame = 2;
	int type = await(c, came, &ncame), err = 0;

	if (type < 0)
		return type;
	if (type != PROFIL_MSG_REPLY || c->in.h.bytes != sizeof(*reply) || c->in.reply.error > 4095)
		err = -EPROTO;
	if (!err) {
		*reply = c->in.reply;
		err = -(int)reply->error;
	}
	for (unsigned int i = 0; i < 2; i++) {
		if (i < ncame && (err || i >= nfds))
			close(came[i]);
		if (i < nfds)
			fd[i] = i < ncame && !err ? came[i] : -1;
	}
	return err;
}

int client_open(struct client **out, const char *path)
{
	struct sockaddr_un address;
	struct client *c;
	int err;

	err = wire_address(&address, path);
	if (err < 0)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (c->sock < 0 || connect(c->sock, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    fcntl(c->sock, F_SETFL, O_NONBLOCK) < 0)
		err = -errno;
	if (!err)
		err = await(c, NULL, NULL);
	/* At its limit of clients profild sends an error reply instead of HELLO. */
	if (err == PROFIL_MSG_REPLY && c->in.h.bytes == sizeof(c->in.reply) &&
	    c->in.reply.error - 1 < 4095)
		err = -(int)c->in.reply.error;
	else if (err >= 0 && err != PROFIL_MSG_HELLO)
		err = -EPROTO;
	if (err < 0) {
		client_close(c);
		return err;
	}
	*out = c;
	return 0;
}

struct client *client_close(struct client *c)
{
	if (c)
		closep(&c->sock);
	free(c);
	return NULL;
}

int client_fd(const struct client *c)
{
	return c->sock;
}

/* A map of the kernel's BPF programs, or with --replay a file that no one can change any more. */
static bool is_table(int fd)
{
	static const char map[] = "anon_inode:bpf-map";
	char name[64], what[64];
	int seals = fcntl(fd, F_GET_SEALS);
	ssize_t n;

	if (seals >= 0)
		return seals & F_SEAL_WRITE && seals & F_SEAL_SHRINK;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	n = readlink(name, what, sizeof(what));
	return n == (ssize_t)strlen(map) && !memcmp(what, map, strlen(map));
}

/*
 * What else a daemon passes that was started by another user could change while it is read, be cut
 * off, or block. @fd becomes -1.
 */
static int check_table(int *fd)
{
	if (*fd < 0 || is_table(*fd))
		return 0;
	close(steal_fd(*fd));
	return -EPROTO;
}

int client_observe(struct client *c, const struct profil_msg_observe *m,
		   struct profil_msg_reply *reply, int *table, int *unwind)
{
	struct profil_msg_observe whole = *m;
	int fd[2] = { -1, -1 }, err;

	wire_header(&whole.h, PROFIL_MSG_OBSERVE, sizeof(whole), 0, 0);
	err = send_all(c, &whole.h, NULL, 0)
		      ?: await_reply(c, reply, fd, 2)
		      ?: check_table(&fd[0])
		      ?: check_table(&fd[1]);
	*table = fd[0];
	*unwind = fd[1];
	return err || *table >= 0 ? err : -EPROTO;
}

int client_add(struct client *c, int pidfd, int maps, struct profil_msg_reply *reply)
{
	int fds[] = { pidfd, maps };
	struct profil_header h;
	int err;

	wire_header(&h, PROFIL_MSG_ADD, sizeof(h), 0, 0);
	err = send_all(c, &h, fds, 2);
	return err ? err : await_reply(c, reply, NULL, 0);
}

/* Sends a message that is only a header. */
static int client_tell(struct client *c, unsigned int type, struct profil_msg_reply *reply)
{
	struct profil_header h;
	int err;

	wire_header(&h, type, sizeof(h), 0, 0);
	err = send_all(c, &h, NULL, 0);
	return err ? err : await_reply(c, reply, NULL, 0);
}

int client_begin(struct client *c, struct profil_msg_reply *reply)
{
	return client_tell(c, PROFIL_MSG_BEGIN, reply);
}

int client_detach(struct client *c, struct profil_msg_reply *reply)
{
	return client_tell(c, PROFIL_MSG_DETACH, reply);
}

/* @unwind NULL: the reply has no map of unwind rules. */
static int ask_machine(struct client *c, struct profil_msg_machine *m,
		       struct profil_msg_reply *reply, int *table, int *unwind)
{
	int fd[2] = { -1, -1 }, err;

	wire_header(&m->h, PROFIL_MSG_MACHINE, sizeof(*m), 0, 0);
	err = send_all(c, &m->h, NULL, 0)
		      ?: await_reply(c, reply, fd, unwind ? 2 : 1)
		      ?: check_table(&fd[0])
		      ?: unwind ? check_table(&fd[1]) : 0;
	*table = fd[0];
	if (unwind)
		*unwind = fd[1];
	return err;
}

int client_machine(struct client *c, __u32 ask, __u64 period_ns, struct profil_msg_reply *reply,
		   int *table)
{
	struct profil_msg_machine m = { .ask = ask, .period_ns = period_ns };

	return ask_machine(c, &m, reply, table, NULL);
}

int client_machine_stacks(struct client *c, __u32 stack_mode, __u64 period_ns,
			  struct profil_msg_reply *reply, int *table)
{
	struct profil_msg_machine m = { .ask = PROFIL_MACHINE_ON,
					.stack_mode = stack_mode,
					.period_ns = period_ns };

	return ask_machine(c, &m, reply, table, NULL);
}

int client_machine_feed(struct client *c, struct profil_msg_reply *reply, int *table, int *unwind)
{
	struct profil_msg_machine m = { .ask = PROFIL_MACHINE_FEED };

	return ask_machine(c, &m, reply, table, unwind);
}

int client_ask(struct client *c, unsigned int type, const struct profil_header **answer)
{
	struct profil_header h;
	int err;

	wire_header(&h, type, sizeof(h), 0, 0);
	err = send_all(c, &h, NULL, 0);
	if (!err)
		err = await(c, NULL, NULL);
	if (err < 0)
		return err;
	if (err == PROFIL_MSG_REPLY && c->in.h.bytes == sizeof(c->in.reply) &&
	    c->in.reply.error - 1 < 4095)
		return -(int)c->in.reply.error;
	*answer = &c->in.h;
	return err == (int)type ? 0 : -EPROTO;
}
