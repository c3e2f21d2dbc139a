/* listen.c - the sockets that profil-http listens on */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "listen.h"

#define BACKLOG 128

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
	struct sockaddr_storage room;
};

static bool is_loopback(const union address *a)
{
	if (a->any.sa_family == AF_INET)
		return ntohl(a->in.sin_addr.s_addr) >> 24 == 127;
	return a->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr);
}

static int refuse(const char *where)
{
	log_err("%s: not a loopback address, and profil-http does not authenticate readers over "
		"TCP "
		"(add --allow-remote if a proxy in front of it does)",
		where);
	return -EPERM;
}

/* Takes ownership of @fd, even on failure. */
static int add(struct listeners *l, int fd, const char *where, const struct options *o)
{
	union address a = { .any.sa_family = AF_UNSPEC };
	socklen_t len = sizeof(a);
	struct listener *new = &l->listener[l->n];

	/* A socket from the service manager can be blocking. */
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 || getsockname(fd, &a.any, &len) < 0 ||
	    l->n == LISTENERS_MAX ||
	    (a.any.sa_family != AF_UNIX && a.any.sa_family != AF_INET &&
	     a.any.sa_family != AF_INET6)) {
		log_err("%s: cannot listen there", where);
		close(fd);
		return -EINVAL;
	}
	*new = (struct listener){ .fd = fd,
				  .is_tcp = a.any.sa_family != AF_UNIX,
				  .is_loopback = is_loopback(&a) };
	l->n++;
	return new->is_tcp && !new->is_loopback && !o->allow_remote ? refuse(where) : 0;
}

static int add_inherited(struct listeners *l, const struct options *o)
{
	int n = sd_listen_fds(1), err = 0;

	for (int i = 0; i < n && !err; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) > 0)
			err = add(l, fd, "the service manager's socket", o);
	}
	return err;
}

/* Removes a stale socket, on which no process listens. */
static int remove_stale(const struct sockaddr_un *a)
{
	__cleanup(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;

	if (lstat(a->sun_path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	if (connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0 || errno != ECONNREFUSED)
		return -EADDRINUSE;
	return unlink(a->sun_path) < 0 ? -errno : 0;
}

/*
 * bind() creates the socket with access for the owner only, so no other client can connect before
 * group and mode are set.
 */
static int bind_unix(int fd, const struct sockaddr_un *a, gid_t group)
{
	mode_t mask = umask(0177);
	int err = bind(fd, (const struct sockaddr *)a, sizeof(*a)) < 0 ? -errno : 0;

	umask(mask);
	if (err < 0)
		return err;
	if (group != (gid_t)-1 && chown(a->sun_path, (uid_t)-1, group) < 0)
		log_warning("%s: cannot change the group of the socket: %s", a->sun_path,
			    strerror(errno));
	else if (group != (gid_t)-1 && chmod(a->sun_path, 0660) < 0)
		return -errno;
	return listen(fd, BACKLOG) < 0 ? -errno : 0;
}

static int open_unix(struct listeners *l, const char *path, const struct options *o, gid_t group)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	__cleanup(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err;

	if (strlen(path) >= sizeof(a.sun_path))
		err = -ENAMETOOLONG;
	else
		err = fd < 0 ? -errno : 0;
	if (!err) {
		strcpy(a.sun_path, path);
		err = remove_stale(&a);
	}
	err = err ?: bind_unix(fd, &a, group);
	if (err < 0) {
		log_err("cannot listen on %s: %s", path, strerror(-err));
		return err;
	}
	err = add(l, steal_fd(fd), path, o);
	if (!err)
		l->listener[l->n - 1].unlink = strdup(path);
	return err;
}

/* HOST:PORT or [HOST]:PORT. HOST is numeric or localhost. */
static int parse_tcp(struct addrinfo **out, const char *where)
{
	const struct addrinfo want = { .ai_family = AF_UNSPEC,
				       .ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	const char *colon = strrchr(where, ':');
	char host[64];
	size_t n = colon ? (size_t)(colon - where) : 0;

	if (!n || n >= sizeof(host))
		return -EINVAL;
	memcpy(host, where, n);
	host[n] = '\0';
	if (*host == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		memmove(host, host + 1, n - 1);
	}
	return getaddrinfo(strcmp(host, "localhost") ? host : "127.0.0.1", colon + 1, &want, out)
		       ? -EINVAL
		       : 0;
}

/* Checks the address before listening. */
static int open_tcp(struct listeners *l, const char *where, const struct options *o)
{
	struct addrinfo *a = NULL;
	union address address;
	int fd, one = 1, err = parse_tcp(&a, where);

	if (err < 0) {
		log_err("--listen %s: must be a path, or an address such as 127.0.0.1:6060", where);
		return err;
	}
	memcpy(&address, a->ai_addr, a->ai_addrlen);
	if (!is_loopback(&address) && !o->allow_remote) {
		freeaddrinfo(a);
		return refuse(where);
	}
	fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
		err = -errno;
		log_err("cannot listen on %s: %s", where, strerror(errno));
		closep(&fd);
	}
	freeaddrinfo(a);
	return err < 0 ? err : add(l, fd, where, o);
}

int listeners_open(struct listeners *l, const struct options *o, gid_t group)
{
	int err;

	*l = (struct listeners){ 0 };
	err = add_inherited(l, o);
	for (size_t i = 0; i < o->nlisten && !err; i++)
		err = *o->listen[i] == '/' ? open_unix(l, o->listen[i], o, group)
					   : open_tcp(l, o->listen[i], o);
	if (!err && !l->n)
		err = open_unix(l, HTTP_SOCKET_DEFAULT, o, group);
	return err;
}

void listeners_close(struct listeners *l)
{
	for (size_t i = 0; i < l->n; i++) {
		if (l->listener[i].unlink)
			unlink(l->listener[i].unlink);
		free(l->listener[i].unlink);
		close(l->listener[i].fd);
	}
}
