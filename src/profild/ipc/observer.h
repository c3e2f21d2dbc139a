/* observer.h - the requests of observers */
#ifndef PROFIL_PROFILD_IPC_OBSERVER_H
#define PROFIL_PROFILD_IPC_OBSERVER_H

#include "connection.h"

/* Handlers of messages: see client_handler. */
int observer_observe(struct client *c, const struct profil_header *h, bool *fds);
int observer_begin(struct client *c, const struct profil_header *h, bool *fds);
int observer_add(struct client *c, const struct profil_header *h, bool *fds);
int observer_machine(struct client *c, const struct profil_header *h, bool *fds);
int observer_stats(struct client *c);
int observer_detach(struct client *c);

/* Fills @row with at most @max attachments that @c may see; returns how many. */
unsigned int observer_list(const struct client *c, struct profil_msg_profile *row,
			   unsigned int max);

#endif
