/* route.h - maps paths and parameters to answers */
#ifndef PROFIL_PROFIL_HTTP_ROUTE_H
#define PROFIL_PROFIL_HTTP_ROUTE_H

#include <microhttpd.h>
#include <stdbool.h>

#include "answers/answer.h"
#include "answers/encoder.h"
#include "answers/graph.h"

struct route {
	enum answer_kind kind;
	unsigned int
		seconds; /* between two snapshots; 0: since the machine profile was turned on */
	struct graph_query graph;
};

/*
 * Parses @url and the parameters of a request into @r. Returns NULL, or an answer that needs no
 * snapshot: a page or an error.
 */
struct answer *route_parse(struct route *r, struct MHD_Connection *mhd, const char *url,
			   unsigned int max_seconds);

/* Says whether @url accepts POST. */
bool route_takes_body(const char *url);

/*
 * Says whether @host, a Host header or NULL, names the loopback interface. Rejecting others
 * protects against DNS rebinding: a page of another site sends its own host name.
 */
bool route_is_local_host(const char *host);

#endif
