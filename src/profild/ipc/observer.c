/* observer.c - the requests of observers */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "core/wire.h"
#include "authorization.h"
#include "observer.h"
#include "profild/observe/attachment.h"
#include "profild/observe/machine.h"

/* Replies with the samples of @a; NULL: none. */
static int reply_for(struct client *c, int error, const struct attachment *a, pid_t tgid,
		     const int *fds, unsigned int nfds)
{
	struct profil_msg_reply r = { .error = (__u32)-error, .tgid = (__u32)tgid };

	wire_header(&r.h, PROFIL_MSG_REPLY, sizeof(r), 0, 0);
	if (a) {
		r.tick_ns = a->event.wanted ? 0 : a->period_ns;
		r.total = attachment_total(a);
	}
	return client_send(c, &r.h, fds, nfds);
}

static int reply(struct client *c, int error, pid_t tgid, const int *fds, unsigned int nfds)
{
	return reply_for(c, error, c->attachment, tgid, fds, nfds);
}

/* -EINPROGRESS, -EDQUOT: to be called again. From the reply on, no sample is missed. */
static int observe(struct client *c, const struct profil_msg_observe *m,
		   const struct observer_peer *peer)
{
	int fds_out[2];
	int err = c->attachment ? 0 : attachment_open(&c->attachment, c->daemon, m, peer);

	if (!err)
		err = attachment_ready(c->attachment);
	if (err == -EINPROGRESS || err == -EDQUOT)
		return err;
	if (err) {
		c->attachment = attachment_close(c->attachment);
		return reply(c, err, 0, NULL, 0);
	}
	c->deadline = sd_event_source_disable_unref(c->deadline);
	fds_out[0] = c->attachment->table;
	fds_out[1] = c->attachment->unwind;
	return reply(c, 0, 0, fds_out, c->attachment->unwind < 0 ? 1 : 2);
}

/*
 * A request waits while its BPF program is loaded and linked, and until its table is in its slot.
 * It is tried again after 1 ms, then after twice as long each time, up to 16 ms, or when its user
 * may again use the main thread.
 */
#define RETRY_US 1000
#define RETRY_US_MOST 16000

/* How long it waits for room, which tables that are ending may give. */
#define ROOM_NS 2000000000u

struct retry {
	int (*attempt)(struct client *c, const struct retry *r);
	struct client *client;
	uint64_t after_us;
	uint64_t room_until_ns;
	struct profil_msg_machine machine;
	struct profil_msg_observe m;
	struct observer_peer peer;
};

static int try_again(struct retry *r, sd_event_source *timer, uint64_t now)
{
	uint64_t rest_us = user_wait_ns(r->client->user, now) / 1000;
	int err;

	r->after_us = r->after_us < RETRY_US_MOST ? 2 * r->after_us : RETRY_US_MOST;
	err = sd_event_source_set_time_relative(timer,
						rest_us > r->after_us ? rest_us : r->after_us);
	return err < 0 ? err : sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

static int on_retry(sd_event_source *timer, uint64_t usec, void *arg)
{
	struct retry *r = arg;
	struct client *c = r->client;
	uint64_t began_ns = now_ns(), ended_ns;
	int err = r->attempt(c, r);

	ended_ns = now_ns();
	user_spend(c->user, ended_ns, ended_ns - began_ns);
	if (err == -EDQUOT && ended_ns >= r->room_until_ns) {
		err = reply(c, -EAGAIN, 0, NULL, 0);
	} else if (err == -EINPROGRESS || err == -EDQUOT) {
		err = try_again(r, timer, ended_ns);
		if (err >= 0)
			return 0;
	}
	c->retry = sd_event_source_disable_unref(timer); /* frees @r when this function returns */
	client_go_on(c, err);
	return 0;
}

/* Attempts what @request describes again. */
static int retry_begin(struct client *c, const struct retry *request)
{
	struct retry *r = malloc(sizeof(*r));
	int err = r ? sd_event_add_time_relative(c->daemon->event, &c->retry, CLOCK_MONOTONIC,
						 RETRY_US, 1, on_retry, r)
		    : -ENOMEM;

	if (err < 0) {
		free(r);
		return err;
	}
	sd_event_source_set_destroy_callback(c->retry, free);
	*r = *request;
	r->client = c;
	r->after_us = RETRY_US;
	r->room_until_ns = now_ns() + ROOM_NS;
	c->waiting = true;
	return 0;
}

static int observe_again(struct client *c, const struct retry *r)
{
	return observe(c, &r->m, &r->peer);
}

int observer_observe(struct client *c, const struct profil_header *h, bool *fds)
{
	const struct profil_msg_observe *m = (const void *)h;
	struct retry r = {
		.attempt = observe_again,
		.m = *m,
		.peer = { .user = c->user, .uid = c->peer.cred.uid, .gid = c->peer.cred.gid }
	};
	int err;

	if (c->attachment && c->attachment->source)
		return reply(c, -EBUSY, 0, NULL, 0);
	c->attachment = attachment_close(c->attachment); /* a detached one */
	err = authorization_observe(c, m, &r.peer);
	if (!err)
		err = observer_peer_of(&r.peer, c->peer.cred.pid);
	if (err)
		return reply(c, err, 0, NULL, 0);
	err = observe(c, m, &r.peer);
	if (err != -EINPROGRESS && err != -EDQUOT)
		return err;
	err = retry_begin(c, &r);
	if (!err)
		return 0;
	c->attachment = attachment_close(c->attachment);
	return reply(c, err, 0, NULL, 0);
}

static int add(struct client *c, pid_t tgid)
{
	return attachment_add(c->attachment, tgid);
}

static int added(struct client *c, int err, pid_t tgid)
{
	return reply(c, err, tgid, NULL, 0);
}

int observer_add(struct client *c, const struct profil_header *h, bool *fds)
{
	int err = c->attachment ? authorization_ask(c, fds, add, added) : -EBADF;

	return err ? reply(c, err, 0, NULL, 0) : 0;
}

int observer_begin(struct client *c, const struct profil_header *h, bool *fds)
{
	return reply(c, c->attachment ? attachment_begin(c->attachment) : -EBADF, 0, NULL, 0);
}

static int ask_machine(struct client *c, const struct profil_msg_machine *m)
{
	struct profild *d = c->daemon;
	int err = authorization_machine(c, m);

	if (err)
		return err;
	switch (m->ask) {
	case PROFIL_MACHINE_ON:
		return m->stack_mode > PROFIL_STACK_FP ? -EINVAL
						       : machine_on(d, m->period_ns, m->stack_mode);
	case PROFIL_MACHINE_OFF:
		machine_off(d);
		return 0;
	case PROFIL_MACHINE_QUERY:
		return machine_newest(d) ? 0 : -ENOENT;
	case PROFIL_MACHINE_FEED:
		return c->peer.privileged ? machine_feed(d, c) : -EACCES;
	default:
		return -EINVAL;
	}
}

/* -EINPROGRESS: to be called again. */
static int answer_machine(struct client *c, const struct profil_msg_machine *m)
{
	const struct profild *d = c->daemon;
	int err = ask_machine(c, m);
	pid_t feeder = d->feeder ? d->feeder->peer.cred.pid : 0;
	const struct attachment *a = NULL;
	unsigned int nfds = 0;
	int fds_out[2];

	if (err == -EINPROGRESS)
		return err;
	if (!err)
		a = m->ask != PROFIL_MACHINE_ON && d->machine ? d->machine : machine_newest(d);
	if (a && a->table < 0) /* it is being made, to take the place of the full one */
		a = d->machine;
	if (a) {
		/* an observer's connection has no deadline */
		c->deadline = sd_event_source_disable_unref(c->deadline);
		fds_out[nfds++] = a->table;
		if (m->ask == PROFIL_MACHINE_FEED)
			fds_out[nfds++] = a->unwind;
	}
	return reply_for(c, err, a, feeder, fds_out, nfds);
}

static int machine_again(struct client *c, const struct retry *r)
{
	return answer_machine(c, &r->machine);
}

int observer_machine(struct client *c, const struct profil_header *h, bool *fds)
{
	struct retry r = { .attempt = machine_again,
			   .machine = *(const struct profil_msg_machine *)h };
	int err = answer_machine(c, &r.machine);

	if (err != -EINPROGRESS)
		return err;
	err = retry_begin(c, &r);
	return err ? reply(c, err, 0, NULL, 0) : 0;
}

int observer_stats(struct client *c)
{
	return reply(c, 0, 0, NULL, 0);
}

int observer_detach(struct client *c)
{
	attachment_detach(c->attachment);
	return reply(c, 0, 0, NULL, 0);
}

unsigned int observer_list(const struct client *c, struct profil_msg_profile *row, unsigned int max)
{
	unsigned int n = 0;

	for (const struct attachment *a = c->daemon->attachments; a && n < max; a = a->next) {
		if (!c->peer.privileged && c->peer.cred.uid != user_uid(a->user))
			continue;
		row[n++] = (struct profil_msg_profile){
			.tgid = (__u32)a->first,
			.uid = user_uid(a->user),
			.tick_ns = a->event.wanted ? 0 : a->period_ns,
			.total = attachment_total(a),
			.attachment = 1 + a->scope,
		};
	}
	return n;
}
