/* graphs.h - pages of the spool, which a thread of their own makes and reads files for */
#ifndef PROFIL_PROFIL_HTTP_GRAPHS_H
#define PROFIL_PROFIL_HTTP_GRAPHS_H

#include "answers/graph.h"
#include "results.h"

struct graphs;

/* @path: the spool. Returns 0 or a negative errno. */
int graphs_new(struct graphs **out, sd_event *event, const char *path);

/* Calls w->ready with the page for @q; requests for the same page share it. */
void graphs_want(struct graphs *g, const struct graph_query *q, struct result_waiter *w);

#endif
