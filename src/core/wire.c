/* wire.c - sends and receives messages over SOCK_SEQPACKET; checks their headers */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire.h"

void wire_header(struct profil_header *h, unsigned int type, size_t fixed, size_t size,
		 unsigned int count)
{
	h->magic = PROFIL_PROTO_MAGIC;
	h->version = PROFIL_PROTO_VERSION;
	h->type = (__u16)type;
	h->bytes = (__u32)(fixed + size * count);
	h->count = count;
}

static int send_whole(int sock, const struct msghdr *msg, size_t bytes)
{
	for (;;) {
		ssize_t n = sendmsg(sock, msg, MSG_NOSIGNAL);

		if (n >= 0)
			return (size_t)n == bytes ? 0 : -EMSGSIZE;
		if (errno != EINTR)
			return -errno;
	}
}

void wire_put_fds(struct msghdr *msg, union wire_fds *room, const int *fds, unsigned int nfds)
{
	msg->msg_control = room->space;
	msg->msg_controllen = CMSG_SPACE(nfds * sizeof(int));
	room->head.cmsg_level = SOL_SOCKET;
	room->head.cmsg_type = SCM_RIGHTS;
	room->head.cmsg_len = CMSG_LEN(nfds * sizeof(int));
	memcpy(CMSG_DATA(&room->head), fds, nfds * sizeof(int));
}

/* Not inlined: a message without descriptors does not need the stack for them. */
static __attribute__((__noinline__)) int send_fds(int sock, struct msghdr msg, size_t bytes,
						  const int *fds, unsigned int nfds)
{
	union wire_fds room;

	wire_put_fds(&msg, &room, fds, nfds);
	return send_whole(sock, &msg, bytes);
}

int wire_send(int sock, const struct profil_header *h, const int *fds, unsigned int nfds)
{
	struct iovec iov = { (void *)(unsigned long)h, h->bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds > PROFIL_MSG_FDS)
		return -EINVAL;
	if (fds && nfds)
		return send_fds(sock, msg, h->bytes, fds, nfds);
	return send_whole(sock, &msg, h->bytes);
}

/* Stores the descriptors of @msg in @fds; closes those without room and returns -EPROTO then. */
static int take_control(struct msghdr *msg, int *fds, unsigned int *nfds, pid_t *sender)
{
	unsigned int room = *nfds;
	int err = msg->msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EPROTO : 0;

	*nfds = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
			struct ucred cred;

			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
			*sender = cred.pid;
		}
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (*nfds < room) {
				fds[(*nfds)++] = fd;
			} else {
				close(fd);
				err = -EPROTO;
			}
		}
	}
	return err;
}

/* Receives into @msg; returns the bytes, -ENODATA at the end of the stream, or another error. */
static ssize_t receive(int sock, struct msghdr *msg)
{
	ssize_t n;

	do {
		n = recvmsg(sock, msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n ? n : -ENODATA;
}

/* Checks that the @n bytes at @h are one message of our version, by its header. */
static int check_header(const struct profil_header *h, ssize_t n)
{
	if ((size_t)n < sizeof(*h) || h->magic != PROFIL_PROTO_MAGIC ||
	    h->version != PROFIL_PROTO_VERSION || h->bytes != (size_t)n)
		return -EPROTO;
	return 0;
}

/* Without a control buffer the kernel installs no descriptors, and sets MSG_CTRUNC if there were.
 */
static int receive_plain(int sock, void *buf, size_t bytes)
{
	struct iovec iov = { buf, bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = receive(sock, &msg);

	if (n < 0)
		return (int)n;
	return msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? -EPROTO : check_header(buf, n);
}

int wire_recv(int sock, void *buf, size_t bytes, int *fds, unsigned int *nfds)
{
	pid_t sender;

	if (!nfds)
		return receive_plain(sock, buf, bytes);
	return wire_recv_from(sock, buf, bytes, fds, nfds, &sender);
}

/* @fds has room for *@nfds. Descriptors received before an error are stored, too. */
__attribute__((__noinline__)) static int receive_fds(int sock, void *buf, size_t bytes, int *fds,
						     unsigned int *nfds, pid_t *sender)
{
	union {
		char space[CMSG_SPACE(PROFIL_MSG_FDS * sizeof(int)) +
			   CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { buf, bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space };
	ssize_t n;
	int err;

	/*
	 * The kernel installs only as many descriptors as there is room for. If no credentials
	 * arrive, their room takes a few more.
	 */
	msg.msg_controllen = CMSG_SPACE(*nfds * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred));
	*sender = 0;
	n = receive(sock, &msg);
	if (n < 0 && n != -ENODATA) {
		*nfds = 0;
		return (int)n;
	}
	err = take_control(&msg, fds, nfds, sender);
	if (err)
		return err;
	return n < 0 ? (int)n : check_header(buf, n);
}

int wire_recv_from(int sock, void *buf, size_t bytes, int *fds, unsigned int *nfds, pid_t *sender)
{
	int err = receive_fds(sock, buf, bytes, fds, nfds, sender);

	while (err && *nfds)
		close(fds[--*nfds]);
	return err;
}

/* The credentials come first and fill the control buffer; the end of the stream has none. */
int wire_peek(int sock, void *buf, size_t bytes, bool *has_fds, pid_t *sender)
{
	union {
		char space[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { buf, bytes };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.space,
			      .msg_controllen = sizeof(control.space) };
	struct ucred cred = { 0 };
	ssize_t n;

	do {
		n = recvmsg(sock, &msg, MSG_PEEK | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n == 0 && msg.msg_controllen == 0)
		return -ENODATA;
	*has_fds = msg.msg_flags & MSG_CTRUNC;
	if (msg.msg_controllen == sizeof(control.space) &&
	    control.align.cmsg_type == SCM_CREDENTIALS)
		memcpy(&cred, CMSG_DATA(&control.align), sizeof(cred));
	*sender = cred.pid;
	return msg.msg_flags & MSG_TRUNC ? -EPROTO : check_header(buf, n);
}

void wire_skip(int sock)
{
	char byte;

	while (recv(sock, &byte, sizeof(byte), MSG_DONTWAIT) < 0 && errno == EINTR)
		;
}

int wire_fits(const struct profil_header *h, size_t fixed, size_t size, unsigned int max)
{
	return h->count <= max && h->bytes == fixed + size * h->count;
}

int wire_address(struct sockaddr_un *out, const char *path)
{
	size_t len;

	if (!path)
		path = getenv(PROFIL_SOCKET_ENV);
	if (!path || !*path)
		path = PROFIL_SOCKET_DEFAULT;
	len = strlen(path);
	if (len >= sizeof(out->sun_path))
		return -ENAMETOOLONG;
	memset(out, 0, sizeof(*out));
	out->sun_family = AF_UNIX;
	memcpy(out->sun_path, path, len);
	return 0;
}
