/* encoder.h - makes answers from snapshots, with the state that lasts from one to the next */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_ENCODER_H
#define PROFIL_PROFIL_HTTP_ANSWERS_ENCODER_H

#include <stdbool.h>

#include "answer.h"
#include "graph.h"
#include "metrics.h"
#include "profil-http/machine/names.h"
#include "profil-http/machine/snapshot.h"
#include "base/host_identity.h"

enum answer_kind {
	ANSWER_PROFILE,	    /* pprof, a sample for each call stack, or place if there are none */
	ANSWER_PLACES,	    /* pprof, a sample for each place */
	ANSWER_BY_GROUP,    /* pprof, a sample for each group and image */
	ANSWER_STACKS,	    /* pprof, a sample for each call stack */
	ANSWER_OTLP,	    /* OTLP, as ANSWER_PROFILE */
	ANSWER_OTLP_PLACES, /* and so on */
	ANSWER_OTLP_STACKS,
	ANSWER_FOLDED,	/* text, as ANSWER_PROFILE */
	ANSWER_NOW,	/* a page, likewise */
	ANSWER_METRICS, /* in Prometheus's format */
	ANSWER_OPENMETRICS,
	ANSWER_GRAPH, /* a page of the spool, not of snapshots */
};

static inline bool answer_needs_stacks(enum answer_kind kind)
{
	return kind == ANSWER_STACKS || kind == ANSWER_OTLP_STACKS;
}

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
 * profile was turned on. @q is for ANSWER_NOW. NULL: out of memory.
 */
struct answer *encoder_answer(struct encoder *e, enum answer_kind kind, const struct graph_query *q,
			      const struct snapshot *from, const struct snapshot *to);

#endif
