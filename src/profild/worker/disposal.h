/* disposal.h - closes clients' sockets that contain unread messages, without blocking */
#ifndef PROFIL_PROFILD_WORKER_DISPOSAL_H
#define PROFIL_PROFILD_WORKER_DISPOSAL_H

#include <systemd/sd-event.h>

struct disposal;

int disposal_open(struct disposal **out, sd_event *event);

/* Closes the remaining sockets, too. Does not block. */
struct disposal *disposal_close(struct disposal *d);

/* Takes ownership of @sock. */
void disposal_add(struct disposal *d, int sock);

#endif
