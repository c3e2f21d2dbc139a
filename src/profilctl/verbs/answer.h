/* answer.h - requests of list and status to the daemon, and their answers */
#ifndef PROFIL_PROFILCTL_VERBS_ANSWER_H
#define PROFIL_PROFILCTL_VERBS_ANSWER_H

#include <jansson.h>

#include "core/proto.h"

#include "table/daemon_client.h"
#include "profilctl/options/options.h"

/*
 * Connects and sends a request. Prints a message on failure and returns an enum ctl_status; the
 * caller closes *@c in any case.
 */
int answer_get(struct client **c, const struct options *o, unsigned int type,
	       const struct profil_header **answer);

/* Prints that the answer is malformed and returns a status. */
int answer_misunderstood(const struct options *o);

/* Prints @root and takes ownership of it. Returns an enum ctl_status. */
int answer_json(json_t *root);

#endif
