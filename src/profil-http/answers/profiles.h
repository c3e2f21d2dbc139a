/* profiles.h - a difference as a profile: folded, and as the page without a spool */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_PROFILES_H
#define PROFIL_PROFIL_HTTP_ANSWERS_PROFILES_H

#include "answer.h"
#include "base/host_identity.h"
#include "graph.h"
#include "profil-http/machine/difference.h"

/* These take the stacks of @d. They return 0 or a negative errno. */
int profiles_answer_folded(struct answer **out, struct names *n, struct difference *d);

/* The flame graph of the samples that @q selects, whatever its times are. */
int profiles_answer_page(struct answer **out, struct names *n, struct difference *d,
			 const struct host_identity *host, const struct graph_query *q);

#endif
