/* hot.h - the hottest functions as JSON, for the page */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_HOT_H
#define PROFIL_PROFIL_HTTP_ANSWERS_HOT_H

#include "answer.h"
#include "profil-http/machine/difference.h"
#include "base/host_identity.h"

/* Returns 0 or -ENOMEM. */
int hot_answer(struct answer **out, struct names *n, const struct difference *d,
	       const struct host_identity *host);

#endif
