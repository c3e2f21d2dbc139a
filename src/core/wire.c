/* wire.c - one message through a SOCK_SEQPACKET socket, checked as far as its header goes */
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

int wire_send(int sock, const struct profil_header *h, const int *fds, unsigned int nfds)
{
	union {
		char space[CMSG_SPACE(PROFIL_MSG_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { (void *)(unsigned long)h, h->bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds > PROFIL_MSG_FDS)
		return -EINVAL;
	if (nfds) {
		struct cmsghdr *c = &control.align;

		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}

	for (;;) {
		ssize_t n = sendmsg(sock, &msg, MSG_NOSIGNAL);

		if (n >= 0)
			return (size_t)n == h->bytes ? 0 : -EMSGSIZE;
		if (errno != EINTR)
			return -errno;
	}
}

/* Moves what @msg brought to @fds; what has no room there is closed and reported. */
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

int wire_recv(int sock, void *buf, size_t bytes, int *fds, unsigned int *nfds)
{
	pid_t sender;

	return wire_recv_from(sock, buf, bytes, fds, nfds, &sender);
}

int wire_recv_from(int sock, void *buf, size_t bytes, int *fds, unsigned int *nfds, pid_t *sender)
{
	union {
		char space[CMSG_SPACE(PROFIL_MSG_FDS * sizeof(int)) +
			   CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { buf, bytes };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space };
	const struct profil_header *h = buf;
	unsigned int none = 0;
	ssize_t n;
	int err;

	if (!nfds)
		nfds = &none;
	/*
	 * The kernel makes no descriptors for which there is no room, and which would only be
	 * closed; but the room of credentials that do not come is room for a few.
	 */
	msg.msg_controllen = CMSG_SPACE(*nfds * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred));
	do {
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;

	*sender = 0;
	err = take_control(&msg, fds, nfds, sender);
	if (!err && n == 0)
		err = -ENODATA;
	else if (!err && ((size_t)n < sizeof(*h) || h->magic != PROFIL_PROTO_MAGIC ||
			  h->version != PROFIL_PROTO_VERSION || h->bytes != (size_t)n))
		err = -EPROTO;
	if (err) {
		while (*nfds)
			close(fds[--*nfds]);
	}
	return err;
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
