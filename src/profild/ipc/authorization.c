/* authorization.c - decides whether a client may make a request */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "authorization.h"
#include "base/membership.h"
#include "profild/observe/attachment.h"

/* True if the client is in group profil. */
static bool client_is_member(const struct client *c)
{
	gid_t operators = c->daemon->operators;

	return operators != (gid_t)-1 &&
	       (c->peer.cred.gid == operators || peer_is_member(c->sock, operators));
}

/* True if the client may observe the machine: it is privileged, or a member of group profil. */
static bool client_may_observe_others(const struct client *c)
{
	return c->peer.privileged || client_is_member(c);
}

struct asked {
	struct client *client;
	struct lane *lane;
	struct task task;
	int err;
	pid_t tgid; /* of the process, once @enter has been called; 0: not yet */
	int (*enter)(struct client *c, pid_t tgid);
	int (*finish)(struct client *c, int err, pid_t tgid);
};

static struct asked *asked_free(struct asked *q)
{
	if (q)
		lane_unref(q->lane);
	free(q);
	return NULL;
}

/* The worker has closed the descriptors: continues to read from the connection. */
static void asked_closed(void *arg, const struct work_answer *a, union work_area *area)
{
	struct asked *q = arg;

	client_go_on(q->client, q->err);
	asked_free(q);
}

/* True for errors of the lane, which a worker never returns. */
static bool no_worker(int err)
{
	return err == -ETIMEDOUT || err == -EAGAIN || err == -EIO;
}

static void asked_finish(struct asked *q, int err)
{
	q->err = q->client->sock < 0 ? 0 : q->finish(q->client, err, q->tgid);
	q->task.work.kind = WORK_DROP;
	q->task.done = asked_closed;
	lane_submit(q->lane, &q->task);
}

static void asked_answered(void *arg, const struct work_answer *a, union work_area *area)
{
	struct asked *q = arg;
	struct client *c = q->client;
	int err = a->err;

	q->task.sock = NULL;  /* the worker has the message */
	if (no_worker(err)) { /* the message may still be in the socket */
		client_go_on(c, err);
		asked_free(q);
		return;
	}
	if (err || c->sock < 0 || q->tgid) {
		asked_finish(q, err ?: a->pid == q->tgid ? 0 : -ESRCH);
		return;
	}
	q->tgid = a->pid;
	err = q->enter(c, a->pid);
	if (err)
		asked_finish(q, err);
	else
		lane_submit(q->lane, &q->task);
}

int authorization_ask(struct client *c, bool *fds, int (*enter)(struct client *c, pid_t tgid),
		      int (*answer)(struct client *c, int err, pid_t tgid))
{
	struct asked *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->client = c;
	q->lane = lane_ref(c->lane);
	q->enter = enter;
	q->finish = answer;
	q->task = (struct task){ .work = { .kind = WORK_AUTHORIZE,
					   .id = lane_new_id(c->lane),
					   .uid = c->peer.cred.uid },
				 .sock = &c->sock,
				 .done = asked_answered,
				 .arg = q };
	if (c->peer.privileged)
		q->task.work.flags |= WORK_PRIVILEGED;
	if (client_is_member(c))
		q->task.work.flags |= WORK_MEMBER;
	c->waiting = true;
	lane_submit(c->lane, &q->task);
	*fds = false;
	return 0;
}

int authorization_start(const struct client *c, uint32_t flags)
{
	return flags & PROFIL_START_FAST && c->daemon->config.restrict_fast &&
			       !user_is_root(c->user)
		       ? -EACCES
		       : 0;
}

/*
 * -EINVAL if no clock has this period, -EACCES if it is below the user's limit. The limit is for
 * each attachment, because all share one clock at the shortest period in use.
 */
static int check_period(const struct client *c, uint64_t period_ns)
{
	uint64_t most = quota_limit(c->daemon->quota, c->user, RES_SAMPLES);

	if (period_ns < period_of(RATE_MAX_HZ) || period_ns > period_of(RATE_MIN_HZ))
		return -EINVAL;
	if (period_ns >= c->daemon->config.period_ns)
		return 0; /* every user may have the daemon's own rate */
	return most < RATE_MAX_HZ && period_ns < period_of(most) ? -EACCES : 0;
}

/* Limits the samples of an event like those of a clock; root is not limited. */
static int check_rate(const struct client *c, const struct profil_msg_observe *m,
		      struct observer_peer *peer)
{
	uint64_t most = quota_limit(c->daemon->quota, c->user, RES_SAMPLES);

	if (!attachment_is_event(m))
		return m->period_ns ? check_period(c, m->period_ns) : 0;
	if (m->frequency > RATE_MAX_HZ)
		return -EINVAL;
	if (most < RATE_MAX_HZ)
		peer->limit_hz = (uint32_t)most;
	return m->frequency && peer->limit_hz && m->frequency > peer->limit_hz ? -EACCES : 0;
}

int authorization_observe(const struct client *c, const struct profil_msg_observe *m,
			  struct observer_peer *peer)
{
	peer->privileged = client_may_observe_others(c);
	if (!peer->privileged && (m->scope == PROFIL_SCOPE_MACHINE ||
				  (m->scope == PROFIL_SCOPE_USER && m->uid != c->peer.cred.uid)))
		return -EACCES;
	return check_rate(c, m, peer);
}

int authorization_machine(const struct client *c, const struct profil_msg_machine *m)
{
	if (!client_may_observe_others(c))
		return -EACCES;
	return m->ask == PROFIL_MACHINE_ON && m->period_ns ? check_period(c, m->period_ns) : 0;
}
