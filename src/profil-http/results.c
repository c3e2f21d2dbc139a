/* results.c - answers for pairs of snapshots, each encoded once */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "results.h"

/* Number of finished results that are kept for further readers. */
#define KEPT 8

/* When files are closed after the last answer, if no other one comes. */
#define IDLE_US (61 * 1000000ull)

struct result {
	struct job job;
	struct results *results;
	enum answer_kind kind;
	struct graph_query query;
	__u64 from_id, to_id;
	struct snapshot *from, *to; /* until encoded */
	struct answer *answer;	    /* after that */
	struct result_waiter *waiters;
	struct result *next; /* the previous one */
};

struct results {
	struct jobs *thread;
	struct encoder encoder; /* used by the thread only */
	struct result *newest;
	struct job idle;
	sd_event_source *idle_timer;
	bool idle_busy;
};

#define container(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

static void run_idle(struct job *j)
{
	names_renew(&container(j, struct results, idle)->encoder.names);
}

static void idle_done(struct job *j)
{
	container(j, struct results, idle)->idle_busy = false;
}

static int on_idle(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct results *s = userdata;

	if (!s->idle_busy)
		jobs_submit(s->thread, &s->idle);
	s->idle_busy = true;
	return 0;
}

static void expect_idle(struct results *s)
{
	sd_event_source_set_time_relative(s->idle_timer, IDLE_US);
	sd_event_source_set_enabled(s->idle_timer, SD_EVENT_ONESHOT);
}

static void run(struct job *j)
{
	struct result *r = (struct result *)j;

	r->answer = encoder_answer(&r->results->encoder, r->kind, &r->query, r->from, r->to);
}

static void forget(struct result *r)
{
	snapshot_unref(r->from);
	snapshot_unref(r->to);
	answer_unref(r->answer);
	free(r);
}

/* Keeps pending results and the newest KEPT finished ones, none that failed. */
static void tidy(struct results *s)
{
	struct result **at = &s->newest;
	unsigned int finished = 0;

	while (*at) {
		struct result *r = *at;

		if (r->to || (r->answer && r->answer->status == 200 && ++finished <= KEPT)) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		forget(r);
	}
}

static void done(struct job *j)
{
	struct result *r = (struct result *)j;
	struct results *s = r->results;
	struct result_waiter *w = steal(r->waiters), *next;
	struct answer *a = r->answer;

	if (a)
		answer_ref(a);
	r->from = snapshot_unref(r->from);
	r->to = snapshot_unref(r->to);
	for (; w; w = next) {
		next = w->next;
		w->ready(w, a ? answer_ref(a) : NULL);
	}
	answer_unref(a);
	tidy(s);
	expect_idle(s);
}

static struct result *find(struct results *s, enum answer_kind kind, const struct graph_query *q,
			   __u64 from_id, __u64 to_id)
{
	struct result *r = s->newest;

	while (r && (r->kind != kind || r->from_id != from_id || r->to_id != to_id ||
		     !graph_query_is_same(&r->query, q)))
		r = r->next;
	return r;
}

static struct result *begin(struct results *s, enum answer_kind kind, const struct graph_query *q,
			    struct snapshot *from, struct snapshot *to)
{
	struct result *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct result){ .job = { .run = run, .done = done },
			      .results = s,
			      .kind = kind,
			      .from_id = from ? from->id : 0,
			      .to_id = to->id,
			      .from = from ? snapshot_ref(from) : NULL,
			      .to = snapshot_ref(to),
			      .next = s->newest };
	memcpy(&r->query, q, sizeof(*q));
	s->newest = r;
	jobs_submit(s->thread, &r->job);
	return r;
}

void results_want(struct results *s, enum answer_kind kind, const struct graph_query *q,
		  struct snapshot *from, struct snapshot *to, struct result_waiter *w)
{
	struct result *r = find(s, kind, q, from ? from->id : 0, to->id);

	if (r && !r->to) {
		w->ready(w, r->answer ? answer_ref(r->answer) : NULL);
		return;
	}
	if (!r)
		r = begin(s, kind, q, from, to);
	if (!r) {
		w->ready(w, NULL);
		return;
	}
	w->next = r->waiters;
	r->waiters = w;
}

int results_new(struct results **out, sd_event *event, const char *socket)
{
	struct results *s = calloc(1, sizeof(*s));
	int err = s ? jobs_open_with(&s->thread, event, 1, JOBS_STACK_LARGE) : -ENOMEM;

	if (err < 0) {
		free(s);
		return err;
	}
	encoder_init(&s->encoder, socket);
	s->idle = (struct job){ .run = run_idle, .done = idle_done };
	err = sd_event_add_time(event, &s->idle_timer, CLOCK_MONOTONIC, UINT64_MAX, 0, on_idle, s);
	if (err < 0) /* the process ends */
		return err;
	sd_event_source_set_enabled(s->idle_timer, SD_EVENT_OFF);
	*out = s;
	return 0;
}
