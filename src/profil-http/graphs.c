/* graphs.c - pages of the spool, which a thread of their own makes and reads files for */
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "graphs.h"

/* How long profiles are kept in memory, and read ahead, after the last page. */
#define IDLE_US (900 * 1000000ull)

struct graph {
	struct job job;
	struct graphs *graphs;
	struct graph_query query;
	struct answer *answer;
	struct result_waiter *waiters;
	struct graph *next;
};

/* The worker owns @index and @more while a job is submitted. */
struct graphs {
	struct worker *worker;
	struct host_identity host;
	struct spool_index index;
	struct graph *pending;
	struct job ahead; /* reads a file */
	bool ahead_busy;
	bool more; /* the last @ahead has read one */
	struct job forget;
	sd_event_source *idle;
	bool is_idle;
};

#define container(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

static void run(struct job *j)
{
	struct graph *g = (struct graph *)j;

	g->answer = graph_answer(&g->graphs->index, &g->graphs->host, &g->query);
}

/* Files are read one at a time, so that pages are made in between. */
static void run_ahead(struct job *j)
{
	struct graphs *s = container(j, struct graphs, ahead);

	s->more = spool_index_read_one(&s->index);
}

static void read_ahead(struct graphs *s)
{
	if (s->ahead_busy || s->is_idle)
		return;
	s->ahead_busy = true;
	worker_submit(s->worker, &s->ahead);
}

static void ahead_done(struct job *j)
{
	struct graphs *s = container(j, struct graphs, ahead);

	s->ahead_busy = false;
	if (s->more)
		read_ahead(s);
}

static void done(struct job *j)
{
	struct graph *g = (struct graph *)j, **at = &g->graphs->pending;
	struct result_waiter *w = g->waiters, *next;

	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	for (; w; w = next) {
		next = w->next;
		w->ready(w, g->answer ? answer_ref(g->answer)
				      : answer_text(500, "profil-http: out of memory"));
	}
	answer_unref(g->answer);
	read_ahead(g->graphs);
	free(g);
}

static void run_forget(struct job *j)
{
	spool_index_fini(&container(j, struct graphs, forget)->index);
	malloc_trim(0);
}

static void forget_done(struct job *j)
{
}

static int on_idle(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct graphs *s = userdata;

	s->is_idle = true;
	worker_submit(s->worker, &s->forget);
	return 0;
}

static struct graph *find(const struct graphs *s, const struct graph_query *q)
{
	struct graph *g = s->pending;

	while (g && !graph_query_is_same(&g->query, q))
		g = g->next;
	return g;
}

static struct graph *begin(struct graphs *s, const struct graph_query *q)
{
	struct graph *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->job = (struct job){ .run = run, .done = done };
	g->graphs = s;
	g->query = *q;
	g->next = s->pending;
	s->pending = g;
	worker_submit(s->worker, &g->job);
	return g;
}

void graphs_want(struct graphs *s, const struct graph_query *q, struct result_waiter *w)
{
	struct graph *g = find(s, q) ?: begin(s, q);

	if (!g) {
		w->ready(w, NULL);
		return;
	}
	w->next = g->waiters;
	g->waiters = w;
	s->is_idle = false;
	sd_event_source_set_time_relative(s->idle, IDLE_US);
	sd_event_source_set_enabled(s->idle, SD_EVENT_ONESHOT);
}

int graphs_new(struct graphs **out, sd_event *event, const char *path)
{
	struct graphs *s = calloc(1, sizeof(*s));
	int err = s ? worker_start(&s->worker, event, "graphs") : -ENOMEM;

	if (err < 0) {
		free(s);
		return err;
	}
	host_identify(&s->host);
	s->index.path = path;
	s->ahead = (struct job){ .run = run_ahead, .done = ahead_done };
	s->forget = (struct job){ .run = run_forget, .done = forget_done };
	err = sd_event_add_time(event, &s->idle, CLOCK_MONOTONIC, UINT64_MAX, 0, on_idle, s);
	if (err < 0) /* the process ends */
		return err;
	sd_event_source_set_enabled(s->idle, SD_EVENT_OFF);
	*out = s;
	return 0;
}
