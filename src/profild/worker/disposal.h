/* disposal.h - closes clients' sockets that contain unread messages, without blocking */
#ifndef PROFIL_PROFILD_WORKER_DISPOSAL_H
#define PROFIL_PROFILD_WORKER_DISPOSAL_H

#include <systemd/sd-event.h>

struct disposal;

int disposal_open(struct disposal **out, sd_event *event);

/* At the daemon's end, which closes the remaining sockets. Its worker is workers_forget()'s. */
struct disposal *disposal_close(struct disposal *d);

/* Takes ownership of @sock. */
void disposal_add(struct disposal *d, int sock);

#endif
