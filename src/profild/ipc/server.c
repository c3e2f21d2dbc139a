/* server.c - the socket where clients connect */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "connection.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "core/wire.h"
#include "request.h"
#include "server.h"

/*
 * Limits how many connections of a user that connects continuously are ahead of another client's:
 * each takes about 50 us of the main thread.
 */
#define BACKLOG 32

/* After a failure to accept, the connection stays in the backlog until the next attempt. */
#define PAUSE_US 100000

static int on_pause_over(sd_event_source *source, uint64_t usec, void *userdata)
{
	const struct profild *d = userdata;

	return sd_event_source_set_enabled(d->listening, SD_EVENT_ON);
}

/* If the timer fails, the listener stays enabled, which only costs time. */
static void pause_listening(struct profild *d)
{
	int err;

	if (d->pause) {
		err = sd_event_source_set_time_relative(d->pause, PAUSE_US);
		if (err >= 0)
			err = sd_event_source_set_enabled(d->pause, SD_EVENT_ONESHOT);
	} else {
		err = sd_event_add_time_relative(d->event, &d->pause, CLOCK_MONOTONIC, PAUSE_US,
						 PAUSE_US / 10, on_pause_over, d);
	}
	if (err >= 0)
		sd_event_source_set_enabled(d->listening, SD_EVENT_OFF);
}

static int on_connection(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct profild *d = userdata;
	int sock = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	int err = sock < 0 ? -errno : client_open(d, sock, request_handle);

	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -ENOBUFS ||
	    err == -EPERM) {
		log_warning("cannot accept a connection: %s; trying again in %d ms", strerror(-err),
			    PAUSE_US / 1000);
		pause_listening(d);
	}
	return 0;
}

/* -EADDRINUSE if a daemon answers at @addr; a stale socket is removed. */
static int clear_path(const struct sockaddr_un *addr)
{
	__cleanup(closep) int probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct stat st;

	if (probe < 0)
		return -errno;
	if (lstat(addr->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -ENOTSOCK;
	if (connect(probe, (const struct sockaddr *)addr, sizeof(*addr)) == 0)
		return -EADDRINUSE;
	if (errno != ECONNREFUSED)
		return -errno;
	return unlink(addr->sun_path) < 0 ? -errno : 0;
}

/* The directory of the default path does not exist before the first start after boot. */
static void make_directory(const struct sockaddr_un *addr)
{
	char dir[sizeof(addr->sun_path)];
	char *slash;

	memcpy(dir, addr->sun_path, sizeof(dir));
	slash = strrchr(dir, '/');
	if (slash && slash != dir) {
		*slash = 0;
		mkdir(dir, 0755); /* if that fails, bind() returns the error */
	}
}

static int listen_at(const struct sockaddr_un *addr)
{
	__cleanup(closep) int sock =
		socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (sock < 0)
		return -errno;
	make_directory(addr);
	if (bind(sock, (const struct sockaddr *)addr, sizeof(*addr)) < 0)
		return -errno;
	if (chmod(addr->sun_path, 0666) < 0 || listen(sock, BACKLOG) < 0)
		return -errno;
	return steal_fd(sock);
}

static const char *advice(int err)
{
	switch (-err) {
	case EADDRINUSE:
		return "; a daemon answers there: use it, or choose another --socket";
	case ENOENT:
		return "; make its directory, or choose another --socket";
	case EACCES:
	case EPERM:
		return "; start it as root, or choose another --socket";
	}
	return "";
}

/*
 * The number of fds that the service manager has passed. Not sd_listen_fds(), which fails if one of
 * them has been closed, as those of the store have.
 */
static int handed_over(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");

	return pid && fds && atoi(pid) == getpid() ? atoi(fds) : 0;
}

/*
 * A descriptor that is not the socket that profild needs, as of a unit with ListenStream=, is a
 * mistake: no client could use it, and would not find the socket that profild made instead.
 */
static int check_handed_over(const struct profild *d)
{
	for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + handed_over(); fd++) {
		if (d->config.fd_store && sd_is_socket(fd, AF_UNSPEC, 0, -1) <= 0)
			continue; /* of the store */
		log_err("descriptor %d, passed by LISTEN_FDS, is not a listening SOCK_SEQPACKET "
			"Unix socket (ListenSequentialPacket= makes one)",
			fd);
		return -EPROTOTYPE;
	}
	return 0;
}

static int watch(struct profild *d)
{
	int err = sd_event_add_io(d->event, &d->listening, d->listener, EPOLLIN, on_connection, d);

	if (err < 0)
		log_err("cannot wait for connections: %s", strerror(-err));
	return err;
}

int server_open(struct profild *d)
{
	struct sockaddr_un addr;
	int err, sock;

	/* The fds may include those of the persistent store: see store.h. */
	for (int i = handed_over(); i > 0; i--) {
		sock = SD_LISTEN_FDS_START + i - 1;
		if (sd_is_socket(sock, AF_UNIX, SOCK_SEQPACKET, 1) <= 0)
			continue;
		d->listener = sock;
		if (listen(sock, BACKLOG) < 0) /* systemd's backlog is 4096 */
			log_warning("cannot shorten the queue of the socket: %s", strerror(errno));
		return watch(d);
	}
	err = check_handed_over(d);
	if (err < 0)
		return err;
	err = wire_address(&addr, d->config.socket_path) ?: clear_path(&addr);
	sock = err ? err : listen_at(&addr);
	if (sock < 0) {
		log_err("cannot listen at %s: %s%s", d->config.socket_path, strerror(-sock),
			advice(sock));
		return sock;
	}
	d->listener = sock;
	d->own_socket = true;
	return watch(d);
}

void server_close(struct profild *d)
{
	if (d->own_socket)
		unlink(d->config.socket_path);
	sd_event_source_unref(d->listening);
	sd_event_source_unref(d->pause);
	if (d->listener > 0)
		close(d->listener);
}
