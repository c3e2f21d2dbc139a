/* wire.h - sends and receives messages over SOCK_SEQPACKET; checks their headers */
#ifndef PROFIL_CORE_WIRE_H
#define PROFIL_CORE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "proto.h"

/* Fills in @h for a message of @type whose @count elements of @size bytes follow @fixed bytes. */
void wire_header(struct profil_header *h, unsigned int type, size_t fixed, size_t size,
		 unsigned int count);

/*
 * Sends the message at @h with @nfds descriptors. Never raises SIGPIPE. Returns 0 or a negative
 * errno: -EAGAIN if a non-blocking socket is full.
 */
int wire_send(int sock, const struct profil_header *h, const int *fds, unsigned int nfds);

/* The control message of as many descriptors as a message may have. */
union wire_fds {
	char space[CMSG_SPACE(PROFIL_MSG_FDS * sizeof(int))];
	struct cmsghdr head;
};

/* Makes @msg carry the @nfds descriptors @fds; @room holds them until it has been sent. */
void wire_put_fds(struct msghdr *msg, union wire_fds *room, const int *fds, unsigned int nfds);

/*
 * Receives a message into @buf of @bytes, and at most *@nfds descriptors (close-on-exec, owned by
 * the caller) into @fds; if there are more, they are closed and the message is refused. Returns 0,
 * -ENODATA at the end of the stream, -EPROTO for a packet that is not one message of our version,
 * -EAGAIN, or another negative errno. *@nfds and @fds are valid only after 0.
 */
int wire_recv(int sock, void *buf, size_t bytes, int *fds, unsigned int *nfds);

/*
 * The same from a socket with SO_PASSCRED: *@sender is the pid of the sending process, or 0 if the
 * message was sent before that option was set.
 */
int wire_recv_from(int sock, void *buf, size_t bytes, int *fds, unsigned int *nfds, pid_t *sender);

/*
 * Reads the next message of a socket with SO_PASSCRED without removing it. *@has_fds: it carries
 * descriptors, none of which the caller gets. For a receiver that must not even close a descriptor,
 * because the sender can make that wait: each close of a FUSE file waits until its server has
 * answered a FLUSH. wire_skip() removes a message without descriptors from the socket.
 */
int wire_peek(int sock, void *buf, size_t bytes, bool *has_fds, pid_t *sender);
void wire_skip(int sock);

/*
 * True if @h is a message of @fixed bytes followed by exactly h->count elements of @size bytes, at
 * most @max of them.
 */
int wire_fits(const struct profil_header *h, size_t fixed, size_t size, unsigned int max);

/*
 * The address of @path, or if NULL of the path in PROFIL_SOCKET or the default one. -ENAMETOOLONG.
 */
struct sockaddr_un;
int wire_address(struct sockaddr_un *out, const char *path);

#endif
