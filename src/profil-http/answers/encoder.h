/* encoder.h - makes answers from snapshots, with the state that lasts from one to the next */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_ENCODER_H
#define PROFIL_PROFIL_HTTP_ANSWERS_ENCODER_H

#include "answer.h"
#include "metrics.h"
#include "profil-http/machine/names.h"
#include "profil-http/machine/snapshot.h"
#include "base/host_identity.h"

enum answer_kind {
	ANSWER_PROFILE,	    /* pprof, a sample for each place */
	ANSWER_BY_GROUP,    /* pprof, a sample for each group and image */
	ANSWER_STACKS,	    /* pprof, a sample for each call stack */
	ANSWER_OTLP,	    /* OTLP, a sample for each place */
	ANSWER_OTLP_STACKS, /* OTLP, a sample for each call stack */
	ANSWER_METRICS,	    /* in Prometheus's format */
	ANSWER_OPENMETRICS,
	ANSWER_GRAPH, /* a page of the spool, not of snapshots */
};

/* Used by one thread only, which can wait for files. */
struct encoder {
	const char *socket; /* the daemon's; NULL: the default */
	struct names names;
	struct host_identity host;
	struct metrics metrics;
};

void encoder_init(struct encoder *e, const char *socket);

/*
 * The answer for the samples between two snapshots of one source; @from NULL: since the machine
 * profile was turned on. NULL: out of memory.
 */
struct answer *encoder_answer(struct encoder *e, enum answer_kind kind, const struct snapshot *from,
			      const struct snapshot *to);

#endif
