/* observer.c - the requests of observers */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static int open_attachment(struct client *c, const struct profil_msg_observe *m)
{
	struct observer_peer peer = { .user = c->user,
				      .uid = c->peer.cred.uid,
				      .gid = c->peer.cred.gid };
	int err = authorization_observe(c, m, &peer);

	if (!err)
		err = observer_peer_of(&peer, c->peer.cred.pid);
	return err ? err : attachment_open(&c->attachment, c->daemon, m, &peer);
}

/* -EINPROGRESS: to be called again. From the reply on, no sample is missed. */
static int observe(struct client *c, const struct profil_msg_observe *m)
{
	int fds_out[2], err = c->attachment ? 0 : open_attachment(c, m);

	if (err == -EINPROGRESS || (!err && !attachment_is_ready(c->attachment)))
		return -EINPROGRESS;
	if (err)
		return reply(c, err, 0, NULL, 0);
	c->deadline = sd_event_source_disable_unref(c->deadline);
	fds_out[0] = c->attachment->table;
	fds_out[1] = c->attachment->unwind;
	return reply(c, 0, 0, fds_out, c->attachment->unwind < 0 ? 1 : 2);
}

/* --- a request whose BPF program is being loaded, or whose table is being put into its slot ----
 */

#define RETRY_US 1000

struct retry {
	struct client_wait *wait;
	struct profil_msg_observe m;
};

static void free_retry(void *arg)
{
	struct retry *r = arg;

	if (r->wait)
		client_go_on(r->wait, 0);
	free(r);
}

static int on_retry(sd_event_source *timer, uint64_t usec, void *arg)
{
	struct retry *r = arg;
	struct client_wait *wait = r->wait;
	int err = wait->client ? observe(wait->client, &r->m) : 0;

	(void)usec;
	if (err == -EINPROGRESS) {
		err = sd_event_source_set_time_relative(timer, RETRY_US);
		if (err >= 0)
			err = sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
		if (err >= 0)
			return 0;
	}
	r->wait = NULL;
	client_go_on(wait, err);
	sd_event_source_set_floating(timer, 0);
	sd_event_source_disable_unref(timer); /* frees @r */
	return 0;
}

static int observe_later(struct client *c, const struct profil_msg_observe *m)
{
	struct retry *r = malloc(sizeof(*r));
	sd_event_source *timer;
	int err;

	if (!r)
		return reply(c, -ENOMEM, 0, NULL, 0);
	r->m = *m;
	r->wait = client_wait(c);
	err = r->wait ? sd_event_add_time_relative(c->daemon->event, &timer, CLOCK_MONOTONIC,
						   RETRY_US, 1, on_retry, r)
		      : -ENOMEM;
	if (err < 0) {
		free_retry(r);
		return reply(c, err, 0, NULL, 0);
	}
	sd_event_source_set_destroy_callback(timer, free_retry);
	sd_event_source_set_floating(timer, 1); /* or the end of the event loop frees it */
	return 0;
}

int observer_observe(struct client *c, const struct profil_header *h, bool *fds)
{
	const struct profil_msg_observe *m = (const void *)h;
	int err;

	(void)fds;
	if (c->attachment && c->attachment->source)
		return reply(c, -EBUSY, 0, NULL, 0);
	c->attachment = attachment_close(c->attachment); /* a detached one */
	err = observe(c, m);
	return err == -EINPROGRESS ? observe_later(c, m) : err;
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

	(void)h;
	return err ? reply(c, err, 0, NULL, 0) : 0;
}

static int ask_machine(struct client *c, const struct profil_msg_machine *m)
{
	struct profild *d = c->daemon;
	int err = authorization_machine(c, m);

	if (err)
		return err;
	switch (m->ask) {
	case PROFIL_MACHINE_ON:
		return machine_on(d, m->period_ns);
	case PROFIL_MACHINE_OFF:
		machine_off(d);
		return 0;
	case PROFIL_MACHINE_QUERY:
		return d->machine ? 0 : -ENOENT;
	default:
		return -EINVAL;
	}
}

int observer_machine(struct client *c, const struct profil_header *h, bool *fds)
{
	int err = ask_machine(c, (const void *)h);
	const struct attachment *a = err ? NULL : c->daemon->machine;

	(void)fds;
	if (a) /* an observer's connection has no deadline */
		c->deadline = sd_event_source_disable_unref(c->deadline);
	return reply_for(c, err, a, 0, a ? &a->table : NULL, a != NULL);
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
