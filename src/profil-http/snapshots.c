/* snapshots.c - takes snapshots, which concurrent requests share */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "snapshots.h"

/* The thread owns @job and @source while the job is submitted, and reads @latest. */
struct snapshots {
	struct job job;
	struct jobs *thread;
	const char *socket;
	struct source *source;
	__u64 taken; /* number of snapshots so far */
	bool busy;
	struct snapshot *made; /* result of the job; NULL: failed, for the reason @why */
	const char *why;
	struct snapshot *latest;
	struct snapshot_waiter *waiters;
};

static void run(struct job *j)
{
	struct snapshots *s = (struct snapshots *)j;

	s->made = NULL;
	if (source_query(&s->source, s->socket, &s->why) < 0)
		return;
	if (snapshot_take(&s->made, s->source, ++s->taken, s->latest) < 0)
		s->why = "too many profiles are being taken: try again later";
}

static void done(struct job *j)
{
	struct snapshots *s = (struct snapshots *)j;
	struct snapshot_waiter *w = steal(s->waiters), *next;

	s->busy = false;
	snapshot_unref(s->latest);
	s->latest = steal(s->made);
	for (; w; w = next) {
		next = w->next;
		w->ready(w, s->latest ? snapshot_ref(s->latest) : NULL, s->why);
	}
}

void snapshots_want(struct snapshots *s, struct snapshot_waiter *w)
{
	if (!s->busy && s->latest && now_ns() - s->latest->taken_ns <= SNAPSHOT_SHARED_NS) {
		w->ready(w, snapshot_ref(s->latest), NULL);
		return;
	}
	w->next = s->waiters;
	s->waiters = w;
	if (s->busy)
		return;
	s->busy = true;
	jobs_submit(s->thread, &s->job);
}

int snapshots_new(struct snapshots **out, sd_event *event, const char *socket)
{
	struct snapshots *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->job = (struct job){ .run = run, .done = done };
	s->socket = socket;
	err = jobs_open_with(&s->thread, event, 1, JOBS_STACK_LARGE);
	if (err < 0) { /* the process ends */
		free(s);
		return err;
	}
	*out = s;
	return 0;
}
