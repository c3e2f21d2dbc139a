/* results.h - answers for pairs of snapshots, each encoded once */
#ifndef PROFIL_PROFIL_HTTP_RESULTS_H
#define PROFIL_PROFIL_HTTP_RESULTS_H

#include "answers/encoder.h"
#include "base/worker.h"

struct result_waiter {
	/* Called with the answer, which the waiter has to unref; NULL: out of memory. */
	void (*ready)(struct result_waiter *w, struct answer *a);
	struct result_waiter *next;
};

struct results;

/* Returns 0 or a negative errno. */
int results_new(struct results **out, sd_event *event, const char *socket);

/*
 * Calls w->ready, possibly at once, with the answer of @kind for two snapshots of one source. @from
 * NULL: since the machine profile was turned on. @q is for ANSWER_NOW.
 */
void results_want(struct results *r, enum answer_kind kind, const struct graph_query *q,
		  struct snapshot *from, struct snapshot *to, struct result_waiter *w);

#endif
