/* server.h - the HTTP server */
#ifndef PROFIL_PROFIL_HTTP_SERVER_H
#define PROFIL_PROFIL_HTTP_SERVER_H

#include "connection.h"

/* Opens the sockets. Returns 0, or a negative errno after a message. */
int server_open(struct server *s, const struct options *o, sd_event *event);

void server_close(struct server *s);

#endif
