/* results.c - answers for pairs of snapshots, each encoded once */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "results.h"

/* Number of finished results that are kept for further readers. */
#define KEPT 8

struct result {
	struct job job;
	struct results *results;
	enum answer_kind kind;
	__u64 from_id, to_id;
	struct snapshot *from, *to; /* until encoded */
	struct answer *answer;	    /* after that */
	struct result_waiter *waiters;
	struct result *next; /* the previous one */
};

struct results {
	struct worker *worker;
	struct encoder encoder; /* used by the worker only */
	struct result *newest;
};

static void run(struct job *j)
{
	struct result *r = (struct result *)j;

	r->answer = encoder_answer(&r->results->encoder, r->kind, r->from, r->to);
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
}

static struct result *find(struct results *s, enum answer_kind kind, __u64 from_id, __u64 to_id)
{
	for (struct result *r = s->newest; r; r = r->next) {
		if (r->kind == kind && r->from_id == from_id && r->to_id == to_id)
			return r;
	}
	return NULL;
}

static struct result *begin(struct results *s, enum answer_kind kind, struct snapshot *from,
			    struct snapshot *to)
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
	s->newest = r;
	worker_submit(s->worker, &r->job);
	return r;
}

void results_want(struct results *s, enum answer_kind kind, struct snapshot *from,
		  struct snapshot *to, struct result_waiter *w)
{
	struct result *r = find(s, kind, from ? from->id : 0, to->id);

	if (r && !r->to) {
		w->ready(w, r->answer ? answer_ref(r->answer) : NULL);
		return;
	}
	if (!r)
		r = begin(s, kind, from, to);
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
	int err = s ? worker_start(&s->worker, event, "encoder") : -ENOMEM;

	if (err < 0) {
		free(s);
		return err;
	}
	encoder_init(&s->encoder, socket);
	*out = s;
	return 0;
}
