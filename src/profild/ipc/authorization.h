/* authorization.h - decides whether a client may make a request */
#ifndef PROFIL_PROFILD_IPC_AUTHORIZATION_H
#define PROFIL_PROFILD_IPC_AUTHORIZATION_H

#include "connection.h"

struct observer_peer;

/*
 * Has a worker receive the message in @c's socket and check its two descriptors: a pidfd, and the
 * process's /proc/PID/maps. If @c may observe that process, calls @enter. Then the worker checks
 * again, because the process may have ended before it was in the process table, and its pid may
 * have been reused. @finish answers the request, with the error of any of these steps. Returns 0,
 * or a negative errno: then neither is called.
 */
int authorization_ask(struct client *c, bool *fds, int (*enter)(struct client *c, pid_t tgid),
		      int (*finish)(struct client *c, int err, pid_t tgid));

/* Checks a START with these flags: -EACCES if the fast rate is restricted. */
int authorization_start(const struct client *c, uint32_t flags);

/*
 * Check an OBSERVE or MACHINE: -EACCES if the user may not observe so much or so often, -EINVAL if
 * no clock has the period. Sets privileged and limit_hz of @peer.
 */
int authorization_observe(const struct client *c, const struct profil_msg_observe *m,
			  struct observer_peer *peer);
int authorization_machine(const struct client *c, const struct profil_msg_machine *m);

#endif
