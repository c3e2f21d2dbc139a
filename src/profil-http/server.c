/* server.c - the HTTP server */
#include <errno.h>
#include <string.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "answers/statistics.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"
#include "request.h"
#include "server.h"

#define SWEEP_US 500000u
#define RUNS 8		    /* most runs of MHD before other events */
#define ACCEPTS 64	    /* most accepted connections before other events */
#define HEADERS_BYTES 16384 /* memory of a request, MHD's included */

/* Runs MHD until it waits for an event, or for a time. */
static void run(struct server *s)
{
	MHD_UNSIGNED_LONG_LONG ms;
	enum MHD_Result waits;
	unsigned int times = 0;
	uint64_t now;

	do {
		MHD_run(s->mhd);
		waits = MHD_get_timeout(s->mhd, &ms);
	} while (waits == MHD_YES && !ms && ++times < RUNS);
	if (waits != MHD_YES) {
		sd_event_source_set_enabled(s->mhd_timer, SD_EVENT_OFF);
		return;
	}
	sd_event_now(s->event, CLOCK_MONOTONIC, &now);
	sd_event_source_set_time(s->mhd_timer, now + ms * 1000);
	sd_event_source_set_enabled(s->mhd_timer, SD_EVENT_ONESHOT);
}

static int on_mhd(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	run(userdata);
	return 0;
}

static int on_mhd_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	run(userdata);
	return 0;
}

static int on_resumed(sd_event_source *source, void *userdata)
{
	run(userdata);
	return 0;
}

/* MHD's callback for the start and end of a connection. */
static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
			  enum MHD_ConnectionNotificationCode what)
{
	struct server *s = cls;
	struct connection *c = *context;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		c = steal(s->admitted);
		c->mhd = mhd;
		c->next = s->connections;
		if (c->next)
			c->next->prev = c;
		s->connections = c;
		*context = c;
		return;
	}
	if (!c)
		return;
	*(c->prev ? &c->prev->next : &s->connections) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	access_leave(&s->access, &c->reader);
	free(c);
}

/* Takes ownership of @fd. */
static void admit(struct server *s, const struct listener *l, int fd,
		  const struct sockaddr_storage *address, socklen_t len)
{
	struct connection *c = calloc(1, sizeof(*c));
	int err = c ? access_identify(&c->reader, &s->access, fd, l->is_tcp) : -ENOMEM;

	if (!err)
		err = access_enter(&s->access, &c->reader);
	if (err < 0) {
		statistics_count(&statistics.refused);
		close(fd);
		free(c);
		return;
	}
	c->server = s;
	c->listener = l;
	c->fd = fd;
	c->deadline_ns = now_ns() + REQUEST_NS;
	s->admitted = c;
	if (MHD_add_connection(s->mhd, fd, (const struct sockaddr *)address, len) == MHD_YES)
		return;
	if (!s->admitted)
		return; /* closed and freed already */
	access_leave(&s->access, &c->reader);
	s->admitted = NULL;
	free(c);
}

static void sweep_later(struct server *s)
{
	uint64_t now;
	int on;

	if (sd_event_source_get_enabled(s->sweep, &on) >= 0 && on != SD_EVENT_OFF)
		return;
	sd_event_now(s->event, CLOCK_MONOTONIC, &now);
	sd_event_source_set_time(s->sweep, now + SWEEP_US);
	sd_event_source_set_enabled(s->sweep, SD_EVENT_ONESHOT);
}

/* Says whether there may be more. */
static bool accept_one(struct server *s, const struct listener *l)
{
	struct sockaddr_storage address = { 0 };
	socklen_t len = sizeof(address);
	int fd = accept4(l->fd, (struct sockaddr *)&address, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		admit(s, l, fd, &address, len);
		return true;
	}
	if (errno == EAGAIN)
		return false;
	if (errno == ECONNABORTED || errno == EINTR)
		return true;
	/* Without descriptors or memory, do not accept until the next sweep. */
	sd_event_source_set_enabled(s->accept[l - s->listeners.listener], SD_EVENT_OFF);
	return false;
}

static int on_accept(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct server *s = userdata;
	const struct listener *l = s->listeners.listener;
	unsigned int n = 0;

	while (l->fd != fd)
		l++;
	sweep_later(s);
	while (n < ACCEPTS && accept_one(s, l))
		n++;
	run(s);
	return 0;
}

/*
 * Finds readers that have closed a suspended connection, which MHD does not detect. A TCP
 * connection can be half closed; for a Unix socket, the kernel reports when both directions are
 * closed.
 */
static void find_gone(struct server *s)
{
	static struct pollfd poll_fds[CONNECTIONS_MAX];
	static struct request *waiting[CONNECTIONS_MAX];
	nfds_t n = 0;

	for (struct connection *c = s->connections; c && n < CONNECTIONS_MAX; c = c->next) {
		if (!c->waiting)
			continue;
		poll_fds[n] = (struct pollfd){ .fd = c->fd,
					       .events = c->listener->is_tcp ? POLLRDHUP : 0 };
		waiting[n++] = c->waiting;
	}
	if (!n || poll(poll_fds, n, 0) <= 0)
		return;
	for (nfds_t i = 0; i < n; i++) {
		if (poll_fds[i].revents)
			request_cancel(waiting[i]);
	}
}

/* Shuts down connections beyond their time limit; MHD then closes them. */
static int on_sweep(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct server *s = userdata;
	__u64 now = now_ns();

	for (size_t i = 0; i < s->listeners.n; i++)
		sd_event_source_set_enabled(s->accept[i], SD_EVENT_ON);
	find_gone(s);
	for (struct connection *c = s->connections; c; c = c->next) {
		if (now < c->deadline_ns)
			continue;
		if (c->waiting)
			request_expire(c->waiting);
		else
			shutdown(c->fd, SHUT_RDWR);
	}
	if (s->connections)
		sweep_later(s);
	return 0;
}

static int listen_to(struct server *s)
{
	int err = 0;

	for (size_t i = 0; i < s->listeners.n && err >= 0; i++) {
		int fd = s->listeners.listener[i].fd;

		err = sd_event_add_io(s->event, &s->accept[i], fd, EPOLLIN, on_accept, s);
	}
	return err;
}

static int start_mhd(struct server *s)
{
	const union MHD_DaemonInfo *epoll;
	int err;

	s->mhd = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
		request_handle, s, MHD_OPTION_NOTIFY_COMPLETED, request_ended, s,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)HEADERS_BYTES, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)CONNECTIONS_MAX + 1, MHD_OPTION_END);
	if (!s->mhd)
		return -ENOMEM;
	epoll = MHD_get_daemon_info(s->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	if (!epoll)
		return -ENOTSUP;
	err = sd_event_add_io(s->event, NULL, epoll->epoll_fd, EPOLLIN, on_mhd, s);
	if (err >= 0)
		err = sd_event_add_time(s->event, &s->mhd_timer, CLOCK_MONOTONIC, 0, 1,
					on_mhd_timer, s);
	s->due_us = UINT64_MAX;
	if (err >= 0)
		err = sd_event_add_time(s->event, &s->due, CLOCK_BOOTTIME, 0, 1000, request_on_due,
					s);
	if (err >= 0)
		err = sd_event_add_defer(s->event, &s->resumed, on_resumed, s);
	if (err >= 0)
		err = sd_event_add_time(s->event, &s->sweep, CLOCK_MONOTONIC, 0, SWEEP_US, on_sweep,
					s);
	return err;
}

int server_open(struct server *s, const struct options *o, sd_event *event)
{
	int err;

	*s = (struct server){ .options = o, .event = event };
	access_init(&s->access, o);
	err = listeners_open(&s->listeners, o, s->access.group);
	if (err < 0)
		return err;
	err = snapshots_new(&s->snapshots, event, o->socket);
	if (err >= 0)
		err = results_new(&s->results, event, o->socket);
	if (err >= 0)
		err = graphs_new(&s->graphs, event, o->spool);
	if (err >= 0)
		err = start_mhd(s);
	if (err >= 0)
		err = listen_to(s);
	if (err >= 0)
		return 0;
	log_err("cannot start the server: %s", strerror(-err));
	return err;
}

/* The process ends, which closes suspended connections. */
void server_close(struct server *s)
{
	listeners_close(&s->listeners);
}
