/* pprof.h - a difference in pprof's format: profile.proto, gzipped */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_PPROF_H
#define PROFIL_PROFIL_HTTP_ANSWERS_PPROF_H

#include <stdbool.h>

#include "answer.h"
#include "profil-http/machine/difference.h"
#include "base/host_identity.h"

/* What a pprof sample stands for. All of them add up to all samples of the difference. */
enum pprof_samples {
	PPROF_PLACES,
	PPROF_GROUPS, /* an object and a group */
	PPROF_STACKS, /* a call stack; the difference must have them */
};

/* In pprof's format, or in that of OTLP. Returns 0 or a negative errno. */
int pprof_answer(struct answer **out, struct names *n, const struct difference *d,
		 const struct host_identity *host, enum pprof_samples samples, bool otlp);

#endif
