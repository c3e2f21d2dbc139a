/* wire.h - one message through a SOCK_SEQPACKET socket, checked as far as its header goes */
#ifndef PROFIL_WIRE_H
#define PROFIL_WIRE_H

#include <stddef.h>
#include <sys/types.h>

#include "proto.h"

/* Fills in @h for a message of @type whose @count elements of @size bytes follow @fixed bytes. */
void wire_header(struct profil_header *h, unsigned int type, size_t fixed, size_t size,
		 unsigned int count);

/*
 * Sends the message at @h with @nfds descriptors. Never raises SIGPIPE. Returns 0 or a negative
 * errno: -EAGAIN where a non-blocking socket is full.
 */
int wire_send(int sock, const struct profil_header *h, const int *fds, unsigned int nfds);

/*
 * Receives a message into @buf of @bytes, and at most *@nfds descriptors (close-on-exec, the
 * caller's to close) into @fds; more than those are closed and make the message bad. Returns 0, or
 * -ENODATA at the end of the stream, -EPROTO for a packet that is no whole message of our version,
 * -EAGAIN, or another negative errno. *@nfds is valid, and its descriptors are the caller's, only
 * after a 0.
 */
int wire_recv(int sock, void *buf, size_t bytes, int *fds, unsigned int *nfds);

/*
 * The same, from a socket with SO_PASSCRED: *@sender is the process that sent it, as the kernel
 * saw it then, or 0 where it was sent before that option was set.
 */
int wire_recv_from(int sock, void *buf, size_t bytes, int *fds, unsigned int *nfds, pid_t *sender);

/*
 * Says whether @h is a message with @fixed bytes and then exactly h->count elements of @size, at
 * most @max of them.
 */
int wire_fits(const struct profil_header *h, size_t fixed, size_t size, unsigned int max);

/* The path in PROFIL_SOCKET, or the default one; -ENAMETOOLONG where no socket can have it. */
struct sockaddr_un;
int wire_address(struct sockaddr_un *out, const char *path);

#endif
