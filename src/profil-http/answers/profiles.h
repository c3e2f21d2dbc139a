/* profiles.h - a difference as a profile: pprof's format, OTLP, folded, the page without a spool */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_PROFILES_H
#define PROFIL_PROFIL_HTTP_ANSWERS_PROFILES_H

#include "answer.h"
#include "base/host_identity.h"
#include "graph.h"
#include "profil-http/machine/difference.h"

enum profiles_format {
	PROFILES_PPROF,
	PROFILES_PPROF_BY_GROUP, /* samples stand for a group and a whole object */
	PROFILES_OTLP,
	PROFILES_FOLDED,
};

/*
 * These take the stacks of @d, of which samples are if there are any. All samples add up to those
 * of the difference. They return 0 or a negative errno.
 */
int profiles_answer(struct answer **out, struct names *n, struct difference *d,
		    const struct host_identity *host, enum profiles_format format);

/* The flame graph of the samples that @q selects, whatever its times are. */
int profiles_answer_page(struct answer **out, struct names *n, struct difference *d,
			 const struct host_identity *host, const struct graph_query *q);

#endif
