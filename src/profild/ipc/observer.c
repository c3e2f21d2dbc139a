/* observer.c - the requests of observers */
#include <errno.h>
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

int observer_observe(struct client *c, const struct profil_header *h, bool *fds)
{
	const struct profil_msg_observe *m = (const void *)h;
	struct observer_peer peer = { .user = c->user,
				      .uid = c->peer.cred.uid,
				      .gid = c->peer.cred.gid };
	int fds_out[2], err;

	(void)fds;
	if (c->attachment && c->attachment->source)
		return reply(c, -EBUSY, 0, NULL, 0);
	c->attachment = attachment_close(c->attachment); /* a detached one */
	err = authorization_observe(c, m, &peer);
	if (!err)
		err = observer_peer_of(&peer, c->peer.cred.pid);
	if (!err)
		err = attachment_open(&c->attachment, c->daemon, m, &peer);
	if (err)
		return reply(c, err, 0, NULL, 0);
	c->deadline = sd_event_source_disable_unref(c->deadline);
	fds_out[0] = c->attachment->table;
	fds_out[1] = c->attachment->unwind;
	return reply(c, 0, 0, fds_out, c->attachment->unwind < 0 ? 1 : 2);
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
