/* request.h - what a message asks for, and its answer */
#ifndef PROFIL_REQUEST_H
#define PROFIL_REQUEST_H

#include "client.h"

/*
 * Does what the message at @h asks, and answers it. @fds are closed by the caller. Returns 0, or a
 * negative errno where the stream makes no sense and the connection is to be closed.
 */
int request_handle(struct client *c, const struct profil_header *h, const int *fds,
		   unsigned int nfds);

#endif
