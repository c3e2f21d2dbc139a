/* lane.c - for each user a queue of tasks and a worker process */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "lane.h"
#include "spawner.h"
#include "worker.h"

#define PARKED_MAX 4
#define SPARE_US 100000 /* after this time exactly one worker is parked again */
#define NSEC_A_USEC 1000ULL

/* Requests without an answer that are sent in a row, at most; the socket's queue holds more. */
#define CLOSES_MAX 64

/* Consecutive failures to send (for instance ENOMEM) after which the worker is given up. */
#define FAULTS_MAX 16

struct lane {
	struct lane *next;
	struct lanes *all;
	struct user *user;
	unsigned int refs;
	void *own;
	struct worker *worker; /* NULL: not needed yet, or lost */
	uint32_t generation;
	struct task *first, **last;
	struct task nothing; /* see lane_close_all_slots() */
	bool busy;	     /* with the first task */
	bool running;
	bool again; /* lanes_on_again() is due */
	uint64_t since_us;
	uint64_t id;
	uint32_t nslots; /* slots ever used */
	uint32_t *free;	 /* those that are free again */
	uint32_t nfree;
	uint32_t nopen;	   /* slots in use */
	uint32_t *closing; /* to be closed by the worker before its next task */
	uint32_t nclosing;
	uint32_t unanswered; /* closes sent since the last answer */
	unsigned int faults; /* requests since the last one that could be sent */
	uint32_t room;	     /* of both arrays */
};

struct lanes {
	sd_event *event;
	uint64_t limit_us;
	void (*lost)(void *arg, struct user *u, bool late);
	void *arg;
	struct lane *lanes;
	struct worker *parked[PARKED_MAX];
	unsigned int nparked;
	bool no_worker; /* the last fork has failed */
	sd_event_source *spare;
	sd_event_source *watchdog;
	bool watching;
	sd_event_source *again; /* runs lanes with deferred tasks */
};

static void lane_run(struct lane *lane, bool defer);

/* --- the time limit --------------------------------------------------------------------------- */

static void lane_lost(struct lane *lane, bool late);

/* Checks all lanes while one is busy. A timer for each task would cost more than the task. */
static int lanes_on_watchdog(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct lanes *l = userdata;
	struct lane *lane, *next;
	bool busy = false;

	for (lane = l->lanes; lane; lane = next) {
		next = lane->next;
		if (lane->busy && lane->since_us + l->limit_us <= usec) {
			log_warning("uid %u: the memory of a process did not answer within "
				    "%llu ms: giving up the user's profiles",
				    user_uid(lane->user), (unsigned long long)(l->limit_us / 1000));
			lane_lost(lane, true);
		} else {
			busy |= lane->busy;
		}
	}
	l->watching = false;
	if (busy) {
		l->watching =
			sd_event_source_set_time_relative(l->watchdog, l->limit_us / 4) >= 0 &&
			sd_event_source_set_enabled(l->watchdog, SD_EVENT_ONESHOT) >= 0;
	}
	return 0;
}

static void lanes_watch(struct lanes *l)
{
	int err;

	if (l->watching)
		return;
	if (l->watchdog) {
		err = sd_event_source_set_time_relative(l->watchdog, l->limit_us / 4);
		if (err >= 0)
			err = sd_event_source_set_enabled(l->watchdog, SD_EVENT_ONESHOT);
	} else {
		err = sd_event_add_time_relative(l->event, &l->watchdog, CLOCK_MONOTONIC,
						 l->limit_us / 4, l->limit_us / 16,
						 lanes_on_watchdog, l);
	}
	l->watching = err >= 0;
}

/* --- tasks ------------------------------------------------------------------------------------ */

/* Ends the first task, which its owner may free or submit again. */
static void lane_finish(struct lane *lane, const struct work_answer *a, union work_area *area)
{
	const struct task *t = lane->first;

	lane->first = t->next;
	if (!lane->first)
		lane->last = &lane->first;
	if (t->done)
		t->done(t->arg, a, area);
}

/* An answer, or with @a NULL the end of the worker. */
static void lane_answered(void *arg, const struct work_answer *a)
{
	struct lane *lane = arg;

	if (!a) {
		lane_lost(lane, false);
		return;
	}
	if (!lane->busy)
		return;
	lane->busy = false;
	lane->unanswered = 0; /* requests are done in order */
	lane_ref(lane);
	lane->running = true; /* the next task may fill the area, which the callback reads */
	lane_finish(lane, a, worker_area(lane->worker));
	lane->running = false;
	lane_run(lane, false);
	lane_unref(lane);
}

/* Gives up the worker: its open memories are lost, and the task in flight fails. */
static void lane_lost(struct lane *lane, bool late)
{
	const struct work_answer a = { .err = late ? -ETIMEDOUT : -EIO };
	bool busy = lane->busy;

	lane_ref(lane);
	worker_give_up(lane->worker, lane->user);
	lane->worker = NULL;
	lane->generation++;
	lane->busy = false;
	while (lane->nclosing)
		lane->free[lane->nfree++] = lane->closing[--lane->nclosing];
	lane->unanswered = 0;
	lane->faults = 0;
	if (busy)
		lane_finish(lane, &a, NULL);
	lane->all->lost(lane->all->arg, lane->user, late);
	lane_run(lane, false);
	lane_unref(lane);
}

/* Adjusts the pool to one parked worker, forked before it is needed. */
static int lanes_on_spare(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct lanes *l = userdata;

	while (l->nparked > 1)
		worker_close(l->parked[--l->nparked]);
	if (!l->nparked && worker_new(&l->parked[0], ACCOUNT_OF_DAEMON, l->event) == 0)
		l->nparked = 1;
	return 0;
}

/* Does not restart a running timer: at most one fork in SPARE_US. */
static void lanes_keep_spare(struct lanes *l)
{
	int on = SD_EVENT_OFF;

	if (l->nparked == 1 || sd_event_source_get_enabled(l->spare, &on) < 0 || on != SD_EVENT_OFF)
		return;
	if (sd_event_source_set_time_relative(l->spare, SPARE_US) >= 0)
		sd_event_source_set_enabled(l->spare, SD_EVENT_ONESHOT);
}

static int lane_need_worker(struct lane *lane)
{
	struct lanes *l = lane->all;
	int err;

	if (lane->worker)
		return 0;
	if (quota_full(lane->user, RES_OPERATIONS))
		return -EAGAIN;
	while (!lane->worker && l->nparked) {
		lane->worker = l->parked[--l->nparked];
		if (!worker_is_alive(lane->worker)) {
			worker_close(lane->worker);
			lane->worker = NULL;
		}
		lanes_keep_spare(l);
	}
	if (!lane->worker) {
		err = worker_new(&lane->worker, user_account_uid(lane->user), l->event);
		if (err) {
			/* Clients retry, so log only the first failure. */
			if (!l->no_worker)
				log_warning("cannot start a worker process: %s", strerror(-err));
			l->no_worker = true;
			return -EAGAIN;
		}
		l->no_worker = false;
	}
	worker_serve(lane->worker, lane_answered, lane);
	return 0;
}

static void lane_close_slots(struct lane *lane)
{
	while (lane->nclosing && lane->unanswered < CLOSES_MAX) {
		struct work w = { .kind = WORK_CLOSE, .slot = lane->closing[lane->nclosing - 1] };

		if (worker_send(lane->worker, &w, NULL, 0))
			return;
		lane->free[lane->nfree++] = lane->closing[--lane->nclosing];
		lane->unanswered++;
	}
}

/* If there are more slots to close than may be sent, sends a no-op whose answer allows the rest. */
static void lane_close_all_slots(struct lane *lane)
{
	lane_close_slots(lane);
	if (lane->nclosing && !lane->first) {
		lane->nothing = (struct task){ .work.kind = WORK_DROP };
		lane_submit(lane, &lane->nothing);
	}
}

/* Sends the first task to the worker. Returns 0 or the error of the task. */
static int lane_begin(struct lane *lane, struct task *t)
{
	int err;

	lane_close_slots(lane);
	if (t->sock && *t->sock < 0)
		return -EIO; /* the connection has been closed */
	err = worker_send(lane->worker, &t->work, t->sock, t->sock != NULL);
	lane->faults = err ? lane->faults + 1 : 0;
	if (err)
		return err;
	lane->busy = true;
	sd_event_now(lane->all->event, CLOCK_MONOTONIC, &lane->since_us);
	lanes_watch(lane->all);
	return 0;
}

/*
 * Begins tasks until one is in flight. With @defer, a task that ends at once stays in the queue and
 * is finished from the event loop, because lane_submit() must not call back.
 */
static void lane_run(struct lane *lane, bool defer)
{
	if (lane->running)
		return;
	lane->running = true;
	while (lane->first && !lane->busy) {
		struct task *t = lane->first;
		struct work_answer a = { .err = lane_need_worker(lane) };

		if (!a.err &&
		    (!t->prepare || t->prepare(t->arg, &t->work, worker_area(lane->worker))))
			a.err = lane_begin(lane, t);
		if (lane->busy)
			break;
		if (defer) {
			sd_event_source_set_enabled(lane->all->again, SD_EVENT_ONESHOT);
			lane->again = true;
			break;
		}
		if (lane->faults == FAULTS_MAX)
			lane_lost(lane, false);
		lane_finish(lane, &a, NULL);
	}
	lane->running = false;
	if (!lane->first && lane->worker)
		lane_close_all_slots(lane);
}

/* Runs all lanes with waiting tasks: deferred ones, or ones that had no worker. */
static int lanes_on_again(sd_event_source *source, void *userdata)
{
	struct lanes *l = userdata;
	struct lane *lane, *next;

	for (lane = l->lanes; lane; lane = next) {
		lane_ref(lane);
		if (lane->first && !lane->busy) {
			lane->again = false;
			lane_run(lane, false);
		}
		next = lane->next;
		lane_unref(lane);
	}
	return 0;
}

/* A killed worker has ended: its user may have another worker again. */
static void lanes_on_worker_end(void *arg)
{
	struct lanes *l = arg;

	sd_event_source_set_enabled(l->again, SD_EVENT_ONESHOT);
}

void lane_submit(struct lane *lane, struct task *t)
{
	t->work.flags &= ~WORK_TAKE;
	t->work.flags |= t->sock ? WORK_TAKE : 0;
	t->next = NULL;
	*lane->last = t;
	lane->last = &t->next;
	lane_run(lane, true);
}

uint64_t lane_new_id(struct lane *lane)
{
	return ++lane->id;
}

/* --- memories --------------------------------------------------------------------------------- */

static int lane_more_slots(struct lane *lane)
{
	uint32_t room = lane->room ? 2 * lane->room : 8;
	uint32_t *free_slots = reallocarray(lane->free, room, sizeof(*free_slots));
	uint32_t *closing;

	if (!free_slots)
		return -ENOMEM;
	lane->free = free_slots;
	closing = reallocarray(lane->closing, room, sizeof(*closing));
	if (!closing)
		return -ENOMEM;
	lane->closing = closing;
	lane->room = room;
	return 0;
}

int remote_init(struct remote *r, struct lane *lane)
{
	if (!lane->nfree && lane->nslots == lane->room && lane_more_slots(lane))
		return -ENOMEM;
	*r = (struct remote){ .lane = lane_ref(lane), .generation = lane->generation };
	r->slot = lane->nfree ? lane->free[--lane->nfree] : lane->nslots++;
	lane->nopen++;
	return 0;
}

/*
 * The slot is free for another memory once the close has been sent, because requests are done in
 * order. A slot is in one of the arrays at most.
 */
void remote_fini(struct remote *r)
{
	struct lane *lane = r->lane;

	if (!lane)
		return;
	if (remote_lost(r))
		lane->free[lane->nfree++] = r->slot;
	else
		lane->closing[lane->nclosing++] = r->slot;
	lane->nopen--;
	*r = (struct remote){ 0 };
	if (!lane->busy && !lane->running && lane->worker)
		lane_close_all_slots(lane);
	lane_unref(lane);
}

void remote_move(struct remote *to, struct remote *from)
{
	*to = *from;
	*from = (struct remote){ 0 };
}

bool remote_lost(const struct remote *r)
{
	return !r->lane || r->generation != r->lane->generation;
}

/* --- lanes ------------------------------------------------------------------------------------ */

int lane_get(struct lane **out, struct lanes *l, struct user *u)
{
	struct lane *lane = *user_own(u);

	if (lane) {
		*out = lane_ref(lane);
		return 0;
	}
	lane = calloc(1, sizeof(*lane));
	if (!lane)
		return -ENOMEM;
	lane->all = l;
	lane->user = user_ref(u);
	lane->last = &lane->first;
	lane->next = l->lanes;
	l->lanes = lane;
	*user_own(u) = lane;
	*out = lane_ref(lane);
	return 0;
}

struct lane *lane_ref(struct lane *lane)
{
	lane->refs++;
	return lane;
}

static void lane_free(struct lane *lane)
{
	struct lane **place = &lane->all->lanes;

	while (*place != lane)
		place = &(*place)->next;
	*place = lane->next;
	if (lane->worker)
		worker_close(lane->worker);
	*user_own(lane->user) = NULL;
	user_unref(lane->user);
	free(lane->free);
	free(lane->closing);
	free(lane);
}

/* A lane lives while it has references or tasks. */
struct lane *lane_unref(struct lane *lane)
{
	struct lanes *l;

	if (!lane || --lane->refs)
		return NULL;
	if (lane->first || lane->running)
		return NULL;
	l = lane->all;
	if (lane->worker && !lane->nclosing && l->nparked < PARKED_MAX) {
		worker_serve(lane->worker, NULL, NULL);
		l->parked[l->nparked++] = lane->worker;
		lane->worker = NULL;
		lanes_keep_spare(l);
	}
	lane_free(lane);
	return NULL;
}

void **lane_own(struct lane *lane)
{
	return &lane->own;
}

bool lanes_busy(const struct lanes *l)
{
	for (const struct lane *lane = l->lanes; lane; lane = lane->next) {
		if (lane->first)
			return true;
	}
	return false;
}

int lanes_open(struct lanes **out, sd_event *event, uint64_t limit_ns,
	       void (*lost)(void *arg, struct user *u, bool late), void *arg)
{
	struct lanes *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->event = event;
	l->limit_us = limit_ns / NSEC_A_USEC;
	l->lost = lost;
	l->arg = arg;
	err = sd_event_add_defer(event, &l->again, lanes_on_again, l);
	if (err >= 0)
		err = sd_event_source_set_enabled(l->again, SD_EVENT_OFF);
	if (err >= 0)
		err = sd_event_add_time_relative(event, &l->spare, CLOCK_MONOTONIC, 0, SPARE_US,
						 lanes_on_spare, l);
	if (err >= 0)
		err = workers_open(event);
	if (err < 0) {
		lanes_close(l);
		return err;
	}
	workers_on_end(lanes_on_worker_end, l);
	*out = l;
	return 0;
}

struct lanes *lanes_close(struct lanes *l)
{
	if (!l)
		return NULL;
	while (l->lanes) {
		struct lane *lane = l->lanes;

		lane_free(lane);
	}
	while (l->nparked)
		worker_close(l->parked[--l->nparked]);
	workers_on_end(NULL, NULL);
	workers_forget();
	sd_event_source_disable_unref(l->watchdog);
	sd_event_source_disable_unref(l->spare);
	sd_event_source_disable_unref(l->again);
	free(l);
	return NULL;
}
