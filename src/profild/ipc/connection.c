/* connection.c - one connection: its messages, and its end */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "connection.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "core/wire.h"
#include "profild/observe/attachment.h"
#include "profild/profile/own_profile.h"
#include "profild/worker/disposal.h"
#include "profild/worker/process_proof.h"

/* A connection that does not observe is closed after this time. */
#define SILENCE_US (10 * 1000000ULL)

/* Requests read from one connection before the next one has its turn. */
#define TURN_REQUESTS 16

/* --- the end ---------------------------------------------------------------------------------- */

/*
 * True if the socket has no unread message. A message can carry descriptors whose last close
 * blocks, and closing the socket closes them. Each message has its sender's credentials, the end of
 * the stream has none. MSG_PEEK without room for descriptors installs none.
 */
static bool client_is_empty(int sock)
{
	union {
		char space[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec iov = { &byte, sizeof(byte) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.space,
			      .msg_controllen = sizeof(control.space) };
	ssize_t n = recvmsg(sock, &msg, MSG_PEEK | MSG_DONTWAIT);

	return n < 0 ? errno == EAGAIN : n == 0 && msg.msg_controllen == 0;
}

/* After the shutdown no message can arrive, so an empty socket may be closed here. */
static void client_close_socket(struct client *c)
{
	shutdown(c->sock, SHUT_RDWR);
	if (client_is_empty(c->sock))
		close(c->sock);
	else
		disposal_add(c->daemon->disposal, c->sock);
}

/* A request under way still has the struct; an observer's ends here, with its timer. */
void client_close(struct client *c)
{
	struct client **place = &c->daemon->clients;
	bool used = c->opening || (c->waiting && !c->retry);

	while (*place && *place != c)
		place = &(*place)->next;
	if (*place)
		*place = c->next;
	if (c->daemon->feeder == c)
		c->daemon->feeder = NULL;
	attachment_close(c->attachment);
	sd_event_source_disable_unref(c->source);
	sd_event_source_disable_unref(c->deadline);
	sd_event_source_disable_unref(c->rest);
	sd_event_source_disable_unref(c->retry);
	remote_fini(&c->memory);
	closep(&c->pidfd);
	client_close_socket(c);
	c->sock = -1;
	free(c->pending);
	free(c->region);
	lane_unref(c->lane);
	charge_give(&c->charge);
	user_unref(c->user);
	if (!used)
		free(c);
}

int client_send(struct client *c, const struct profil_header *h, const int *fds, unsigned int nfds)
{
	int err = wire_send(c->sock, h, fds, nfds);

	return err == -EAGAIN ? -ENOBUFS : err; /* it sends requests and does not read answers */
}

/* --- messages --------------------------------------------------------------------------------- */

/*
 * True if @sender is the process that connected. As that process is alive, its pid has not been
 * reused since its pidfd was opened, which was before its first message.
 */
static bool client_is_peer(const struct client *c, pid_t sender)
{
	struct pollfd ended = { .fd = c->pidfd, .events = POLLIN };

	return sender == c->peer.cred.pid && poll(&ended, 1, 0) == 0;
}

void client_go_on(struct client *c, int err)
{
	if (c->sock < 0) {
		free(c);
		return;
	}
	c->waiting = false;
	if (err) {
		client_close(c);
		return;
	}
	if (c->unread)
		sd_event_source_set_enabled(c->source, SD_EVENT_ON);
	c->unread = false;
}

static void client_dropped(void *arg, const struct work_answer *a, union work_area *area)
{
	client_go_on(arg, a->err); /* without a worker the message is still in the socket */
}

/*
 * Has a worker receive a message with unwanted descriptors and close them. Nothing is read until
 * then.
 */
static void client_drop_message(struct client *c)
{
	c->task = (struct task){ .work = { .kind = WORK_DROP, .id = lane_new_id(c->lane) },
				 .sock = &c->sock,
				 .done = client_dropped,
				 .arg = c };
	c->waiting = true;
	lane_submit(c->lane, &c->task);
}

/* Handles one message. One with descriptors is only peeked at here. */
static int client_receive(struct client *c)
{
	static union {
		struct profil_header h;
		uint8_t space[PROFIL_MSG_MAX];
	} msg;
	bool fds = false;
	pid_t sender;
	int err = wire_peek(c->sock, &msg, sizeof(msg), &fds, &sender);

	if (err)
		return err;
	if (!client_is_peer(c, sender))
		return -EPERM;
	if (!fds)
		wire_skip(c->sock);
	err = c->handle(c, &msg.h, &fds);
	if (!err && fds)
		client_drop_message(c);
	return err;
}

/*
 * A connection that is resting or has not been greeted is watched only for EPOLLHUP, which is
 * always reported, so that it is freed as soon as the client closes it. Otherwise resting
 * connections would fill the limit of a user that connects often.
 */
static void client_watch(struct client *c)
{
	sd_event_source_set_io_events(c->source, c->greeted && !c->resting ? EPOLLIN : 0);
}

static void client_identify(struct client *c);

static int client_rested(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct client *c = userdata;

	c->resting = false;
	client_watch(c);
	sd_event_source_set_enabled(c->source, SD_EVENT_ON);
	if (!c->greeted)
		client_identify(c);
	return 0;
}

/* Charges the main thread's time to the user. The connection rests while its share is overdrawn. */
static void client_rest(struct client *c, uint64_t began_ns)
{
	uint64_t now = now_ns(), wait_us;
	int err = 0;

	user_spend(c->user, now, now - began_ns);
	wait_us = user_wait_ns(c->user, now) / 1000;
	if (!wait_us)
		return;
	if (c->rest) {
		err = sd_event_source_set_time_relative(c->rest, wait_us);
		if (err >= 0)
			err = sd_event_source_set_enabled(c->rest, SD_EVENT_ONESHOT);
	} else {
		err = sd_event_add_time_relative(c->daemon->event, &c->rest, CLOCK_MONOTONIC,
						 wait_us, 1, client_rested, c);
	}
	c->resting = err >= 0;
	client_watch(c);
}

/* The client has closed a connection that is not being read. */
static void client_hung_up(struct client *c)
{
	if (!c->greeted || (!c->waiting && client_is_empty(c->sock)))
		client_close(c);
	else
		sd_event_source_set_enabled(c->source, SD_EVENT_OFF); /* until client_rested() */
}

static int client_on_ready(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct client *c = userdata;
	uint64_t began_ns = now_ns();
	int err = 0;

	if (c->resting || !c->greeted) {
		if (revents & (EPOLLHUP | EPOLLERR))
			client_hung_up(c);
		return 0;
	}
	if (c->waiting) { /* until client_go_on() */
		c->unread = true;
		sd_event_source_set_enabled(source, SD_EVENT_OFF);
		return 0;
	}
	for (int i = 0; !err && !c->waiting && i < TURN_REQUESTS; i++)
		err = client_receive(c);
	if (err && err != -EAGAIN) {
		user_spend(c->user, now_ns(), now_ns() - began_ns);
		client_close(c);
		return 0;
	}
	client_rest(c, began_ns);
	return 0;
}

/* --- the beginning ---------------------------------------------------------------------------- */

static int client_on_deadline(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct client *c = userdata;

	if (c->waiting) { /* the client is not silent, but waits for its reply */
		sd_event_source_set_time_relative(source, SILENCE_US);
		sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
		return 0;
	}
	client_close(c);
	return 0;
}

static int client_greet(struct client *c)
{
	struct profil_msg_hello hello = { 0 };

	if (getrandom(c->cookie, sizeof(c->cookie), 0) != sizeof(c->cookie))
		return -EIO;
	wire_header(&hello.h, PROFIL_MSG_HELLO, sizeof(hello), 0, 0);
	memcpy(hello.cookie, c->cookie, sizeof(hello.cookie));
	c->greeted = true;
	client_watch(c);
	return wire_send(c->sock, &hello.h, NULL, 0);
}

/*
 * Closes a connection that has not been greeted. If there is no room for it, the client gets an
 * error instead of HELLO.
 */
static void client_refuse(struct client *c, int err)
{
	struct profil_msg_reply r = { .error = err == -ENOMEM ? ENOMEM : EAGAIN };

	if (err == -EAGAIN || err == -ENOMEM || err == -ETIMEDOUT) {
		wire_header(&r.h, PROFIL_MSG_REPLY, sizeof(r), 0, 0);
		wire_send(c->sock, &r.h, NULL, 0);
	}
	client_close(c);
}

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Before Linux 6.5 only the peer's pid is known, which may have been reused. */
static int client_pidfd(const struct client *c)
{
	socklen_t len = sizeof(int);
	int pidfd;

	if (getsockopt(c->sock, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0)
		return pidfd;
	if (errno != ENOPROTOOPT)
		return -errno;
	pidfd = (int)syscall(SYS_pidfd_open, c->peer.cred.pid, 0);
	return pidfd < 0 ? -errno : pidfd;
}

/*
 * The worker has the memory that the process had before it learnt the cookie: so what is found with
 * the cookie in it can be no other process, and no image that it execs afterwards. A peer that
 * speaks before it is greeted may be dead already, and its number another's; what comes with that
 * number after this comes from the process that has it now.
 */
static void client_opened(void *arg, const struct work_answer *a, union work_area *area)
{
	struct client *c = arg;
	int err = 0;

	c->opening = false;
	if (c->sock < 0) {
		free(c);
		return;
	}
	c->peer.privileged |= a->privileged;
	if (a->err == -ETIMEDOUT || a->err == -EAGAIN || a->err == -EIO)
		err = a->err; /* its user's worker is stuck */
	else if (a->err)
		remote_fini(&c->memory); /* an observer has no need of it */
	else
		c->memory.image = a->image;
	if (!err && !client_is_empty(c->sock))
		err = -EPROTO;
	if (!err)
		err = client_greet(c);
	if (err)
		client_refuse(c, err);
}

static bool client_prepare_open(void *arg, struct work *work, union work_area *area)
{
	const struct client *c = arg;

	return c->sock >= 0;
}

/*
 * The slow part of opening a connection, after the rest of a user that connects often. The
 * privileges are those that the process has before its first message. It may have exec'd a set-uid
 * program since it connected, so the worker checks them again, with its uids. For a process with a
 * profile the worker has the memory open already, so STOP and SYNC need no worker for it.
 */
static int identify(struct client *c)
{
	struct work *w = &c->task.work;
	const int on = 1;
	int err;

	c->task = (struct task){
		.work = { .kind = WORK_OPEN, .pid = c->peer.cred.pid, .uid = c->peer.cred.uid },
		.prepare = client_prepare_open,
		.done = client_opened,
		.arg = c
	};
	c->peer.privileged = user_is_root(c->user);
	if (c->peer.cred.uid != 0 && process_privileged(c->peer.cred.pid))
		w->flags = WORK_PRIVILEGED;
	if (setsockopt(c->sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return -errno;
	c->pidfd = client_pidfd(c);
	if (c->pidfd < 0)
		return c->pidfd;
	if (!w->flags)
		c->lender = own_profile_lender(c->daemon, c->peer.cred.pid, c->lane);
	if (c->lender)
		return client_is_empty(c->sock) ? client_greet(c) : -EPROTO;
	err = remote_init(&c->memory, c->lane);
	if (err)
		return err;
	w->slot = c->memory.slot;
	c->opening = true;
	lane_submit(c->lane, &c->task);
	return 0;
}

static void client_identify(struct client *c)
{
	int err = identify(c);

	if (err)
		client_refuse(c, err);
}

/* The oldest connection of @u that does not observe, else its newest. NULL: all have a wait. */
static struct client *user_least_needed(const struct profild *d, const struct user *u)
{
	struct client *idle = NULL, *newest = NULL;

	for (struct client *c = d->clients; c; c = c->next) { /* newest first */
		if (c->user != u || c->waiting)
			continue;
		if (!c->attachment)
			idle = c;
		if (!newest)
			newest = c;
	}
	return idle ? idle : newest;
}

/*
 * The machine's limit of connections is reached, the limit of @c's user is not: closes a connection
 * of the user with the most. So many uids together (one person's subordinate ids) cannot exclude
 * another user.
 */
static int client_make_room(const struct client *c)
{
	const struct quota *q = c->daemon->quota;
	const struct user *most = c->user;
	uint64_t own = quota_used(q, c->user, RES_CONNECTIONS);
	struct client *other;

	if (own >= quota_limit(q, c->user, RES_CONNECTIONS))
		return -EAGAIN;
	for (other = c->daemon->clients; other; other = other->next) {
		if (other->user && quota_used(q, other->user, RES_CONNECTIONS) >
					   quota_used(q, most, RES_CONNECTIONS))
			most = other->user;
	}
	if (quota_used(q, most, RES_CONNECTIONS) <= own + 1)
		return -EAGAIN;
	other = user_least_needed(c->daemon, most);
	if (!other)
		return -EAGAIN;
	client_close(other);
	return 0;
}

/* Identifies the user and charges the connection to it, before anything else. */
static int client_charge(struct client *c)
{
	socklen_t len = sizeof(c->peer.cred);
	bool root;
	int err;

	if (getsockopt(c->sock, SOL_SOCKET, SO_PEERCRED, &c->peer.cred, &len) < 0)
		return -errno;
	root = c->peer.cred.uid == 0 && process_privileged(c->peer.cred.pid);
	err = user_get(&c->user, c->daemon->quota, c->peer.cred.uid, root);
	if (!err)
		err = lane_get(&c->lane, c->daemon->lanes, c->user);
	if (err)
		return err;
	err = charge_take(&c->charge, c->user, RES_CONNECTIONS, 1);
	if (err == -EAGAIN && client_make_room(c) == 0)
		err = charge_take(&c->charge, c->user, RES_CONNECTIONS, 1);
	return err;
}

int client_open(struct profild *d, int sock, client_handler *handle)
{
	struct client *c = calloc(1, sizeof(*c));
	uint64_t began_ns = now_ns();
	int err;

	if (!c) {
		close(sock);
		return -ENOMEM;
	}
	c->daemon = d;
	c->sock = sock;
	c->pidfd = -1;
	c->handle = handle;
	c->next = d->clients;
	d->clients = c;
	err = client_charge(c);
	if (!err)
		err = sd_event_add_io(d->event, &c->source, sock, 0, client_on_ready, c);
	if (err >= 0)
		err = sd_event_add_time_relative(d->event, &c->deadline, CLOCK_MONOTONIC,
						 SILENCE_US, SILENCE_US / 10, client_on_deadline,
						 c);
	if (err >= 0) {
		client_rest(c, began_ns);
		if (!c->resting)
			client_identify(c);
		return 0;
	}
	if (c->user)
		user_spend(c->user, now_ns(), now_ns() - began_ns);
	client_refuse(c, err);
	return err;
}
