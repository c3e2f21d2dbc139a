/* graph.h - the page with the flame graph of a span of the spool's time, or of two */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_GRAPH_H
#define PROFIL_PROFIL_HTTP_ANSWERS_GRAPH_H

#include "answer.h"
#include "base/host_identity.h"
#include "formats/page/spool_page.h"
#include "profil-http/machine/spool_index.h"

#define GRAPH_NAME_BYTES 512

/* What a request asks for; bytes that are not used are 0, so that equal ones are equal bytes. */
struct graph_query {
	struct spool_span span[SPOOL_SPANS];	       /* after, before */
	size_t spans;				       /* 0: the newest one */
	char name[SPOOL_PAGE_KINDS][GRAPH_NAME_BYTES]; /* "": all */
	char language[32];
	bool by_unit;
};

bool graph_query_is_same(const struct graph_query *a, const struct graph_query *b);

/* The answer for @q, from files that are read for some time at most. NULL: out of memory. */
struct answer *graph_answer(struct spool_index *x, const struct host_identity *host,
			    const struct graph_query *q);

/* The answer for @p, a profile of all of the time until now. Returns 0 or a negative errno. */
int graph_answer_of(struct answer **out, const struct profile *p, const struct host_identity *host,
		    const struct graph_query *q);

#endif
