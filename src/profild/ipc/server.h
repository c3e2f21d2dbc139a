/* server.h - the socket where clients connect */
#ifndef PROFIL_PROFILD_IPC_SERVER_H
#define PROFIL_PROFILD_IPC_SERVER_H

#include "profild/daemon.h"

/*
 * Listens on the service manager's socket, else at the configured path: -EADDRINUSE if a daemon
 * answers there; a stale socket is replaced. Logs its errors itself.
 */
int server_open(struct profild *d);
void server_close(struct profild *d);

#endif
