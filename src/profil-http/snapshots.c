/* snapshots.c - takes snapshots, which concurrent requests share */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "profil-http/machine/stack_attachment.h"
#include "snapshots.h"

/* The interval in which an attachment with call stacks learns of new programs. */
#define KEEP_US 100000u
#define RETRY_US 5000000u /* after a failure */

/* The thread owns @job, @keep, @attachment and @source while a job is submitted. */
struct snapshots {
	struct job job;
	struct job keep; /* makes or keeps the attachment */
	struct jobs *thread;
	const char *socket;
	struct stack_attachment *attachment; /* NULL: snapshots are of the machine profile */
	sd_event_source *timer;		     /* of the next @keep */
	bool attached;			     /* the last @keep succeeded */
	struct source *source;
	__u64 taken; /* number of snapshots so far */
	bool busy;
	struct snapshot *made; /* result of the job; NULL: failed, for the reason @why */
	const char *why;
	struct snapshot *latest;
	struct snapshot_waiter *waiters;
};

static int query(struct snapshots *s, const char **why)
{
	return s->attachment ? stack_attachment_query(s->attachment, &s->source, why)
			     : source_query(&s->source, s->socket, why);
}

static void run(struct job *j)
{
	struct snapshots *s = (struct snapshots *)j;

	s->made = NULL;
	if (query(s, &s->why) < 0)
		return;
	if (snapshot_take(&s->made, s->source, ++s->taken) < 0)
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

#define container(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

static void run_keep(struct job *j)
{
	const char *why;

	struct snapshots *s = container(j, struct snapshots, keep);

	s->attached = !query(s, &why); /* the next snapshot reports an error */
}

static void keep_done(struct job *j)
{
	struct snapshots *s = container(j, struct snapshots, keep);

	sd_event_source_set_time_relative(s->timer, s->attached ? KEEP_US : RETRY_US);
	sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct snapshots *s = userdata;

	jobs_submit(s->thread, &s->keep);
	return 0;
}

static int start(struct snapshots *s, sd_event *event, unsigned int stacks_hz)
{
	int err = jobs_open_with(&s->thread, event, 1, JOBS_STACK_LARGE);

	if (err < 0 || !stacks_hz)
		return err;
	err = stack_attachment_new(&s->attachment, s->socket, stacks_hz);
	return err < 0 ? err
		       : sd_event_add_time(event, &s->timer, CLOCK_MONOTONIC, 0, 0, on_timer, s);
}

int snapshots_new(struct snapshots **out, sd_event *event, const char *socket,
		  unsigned int stacks_hz)
{
	struct snapshots *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->job = (struct job){ .run = run, .done = done };
	s->keep = (struct job){ .run = run_keep, .done = keep_done };
	s->socket = socket;
	err = start(s, event, stacks_hz);
	if (err < 0) { /* the process ends */
		free(s);
		return err;
	}
	*out = s;
	return 0;
}
