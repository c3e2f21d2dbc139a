/* listen.h - the socket where clients connect */
#ifndef PROFIL_LISTEN_H
#define PROFIL_LISTEN_H

#include "profild.h"

/*
 * Listens where the service manager does already, else at the configured path: -EADDRINUSE where a
 * daemon answers there; a socket that nobody serves is replaced. Says itself what went wrong.
 */
int listen_open(struct profild *d);
void listen_close(struct profild *d);

#endif
