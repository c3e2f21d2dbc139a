/* request.c - what a message asks for, and its answer */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/scope.h"
#include "core/wire.h"
#include "mirror.h"
#include "policy.h"
#include "request.h"
#include "session.h"

static uint64_t now_ns(const struct profild *d)
{
	uint64_t usec = 0;

	sd_event_now(d->event, CLOCK_MONOTONIC, &usec);
	return usec * 1000;
}

/* Answers with @error (negative errno or 0) and what @s (or NULL) has counted. */
static int reply(struct client *c, int error, const struct session *s, pid_t tgid, const int *fds,
		 unsigned int nfds)
{
	struct profil_msg_reply r = { .error = (__u32)-error, .tgid = (__u32)tgid };
	struct ticks ticks;

	wire_header(&r.h, PROFIL_MSG_REPLY, sizeof(r), 0, 0);
	if (s) {
		session_ticks(s, &ticks);
		r.tick_ns = s->period_ns;
		r.total = ticks.total;
		r.unmatched = ticks.unmatched;
		r.lost = ticks.lost + c->unsent;
		r.raw = ticks.raw - c->unsent;
		r.stored = s->targets ? s->targets->ledger->pcs - s->pcs_told : 0;
	}
	return client_send(c, &r.h, fds, nfds);
}

static int answer(struct client *c, int error)
{
	return reply(c, error, NULL, 0, NULL, 0);
}

static struct session_request request_of(struct client *c, uint64_t cookie_addr)
{
	return (struct session_request){
		.tgid = c->peer.pid,
		.uid = c->peer.uid,
		.cookie = c->cookie,
		.memory = &c->memory,
		.cookie_addr = cookie_addr,
	};
}

/* START and EXTEND, once all their regions are here. */
static int start(struct client *c)
{
	const struct profil_msg_start *m = (const void *)c->pending;
	struct session_request r = request_of(c, m->cookie_addr);
	struct session *s = NULL;
	int err;

	r.flags = m->flags;
	r.width = m->width;
	r.cap = m->cap;
	r.region = c->region;
	r.nregions = c->nregions;
	if (m->h.type == PROFIL_MSG_EXTEND && !session_of(c->daemon, &r))
		return answer(c, -ESRCH);
	err = session_start(&s, c->daemon, &r);
	if (err)
		return answer(c, err);
	err = reply(c, 0, s, r.tgid, NULL, 0);
	session_check(s);
	return err;
}

static int image(struct client *c)
{
	const struct profil_msg_image *m = (const void *)c->pending;
	unsigned int nfds = PROFIL_MSG_FDS;
	int fds[PROFIL_MSG_FDS];
	struct target *t = NULL;
	uint64_t nbins = 0;
	int err;

	if (!c->session)
		return answer(c, -EBADF);
	for (uint32_t i = 0; i < c->nregions; i++)
		nbins += c->region[i].x.nbins;
	err = policy_image(c->daemon, c->peer.uid, c->nregions, nbins);
	if (!err)
		err = session_image(&t, c->session, (pid_t)m->tgid, m->execs, c->region,
				    c->nregions);
	if (!err)
		err = c->daemon->sampler->ops->chunks(c->daemon->sampler, t, fds, &nfds);
	if (err)
		return answer(c, err);
	return reply(c, 0, c->session, t->tgid, fds, nfds);
}

/* Begins a request of @nregions regions, or goes on with it; does it when they are all here. */
static int gather(struct client *c, const struct profil_msg_region *region, uint32_t n)
{
	const struct profil_header *h = (const void *)c->pending;
	int err;

	if (n > c->nregions - c->have)
		return -EPROTO;
	memcpy(c->region + c->have, region, n * sizeof(*region));
	c->have += n;
	if (c->have < c->nregions)
		return n ? 0 : -EPROTO;

	err = h->type == PROFIL_MSG_IMAGE ? image(c) : start(c);
	free(c->pending);
	free(c->region);
	c->pending = NULL;
	c->region = NULL;
	return err;
}

/* @fixed: the bytes of the message before its regions. */
static int begin(struct client *c, const struct profil_header *h, size_t fixed, uint32_t nregions)
{
	if (c->pending)
		return -EPROTO;
	if (nregions > PROFIL_TARGET_REGIONS)
		return answer(c, -E2BIG);
	c->pending = malloc(fixed);
	c->region = calloc(nregions ? nregions : 1, sizeof(*c->region));
	if (!c->pending || !c->region)
		return -ENOMEM;
	memcpy(c->pending, h, fixed);
	c->nregions = nregions;
	c->have = 0;
	return gather(c, (const void *)((const uint8_t *)h + fixed), h->count);
}

static int on_start(struct client *c, const struct profil_header *h, const int *fds)
{
	const struct profil_msg_start *m = (const void *)h;

	(void)fds;
	return begin(c, h, sizeof(*m), m->nregions);
}

static int on_image(struct client *c, const struct profil_header *h, const int *fds)
{
	const struct profil_msg_image *m = (const void *)h;

	(void)fds;
	return begin(c, h, sizeof(*m), m->nregions);
}

static int on_regions(struct client *c, const struct profil_header *h, const int *fds)
{
	const struct profil_msg_regions *m = (const void *)h;

	(void)fds;
	return c->pending ? gather(c, m->region, h->count) : -EPROTO;
}

static int on_stop(struct client *c, const struct profil_header *h, const int *fds)
{
	const struct profil_msg_self *m = (const void *)h;
	struct session_request r = request_of(c, m->cookie_addr);
	struct session *s = session_of(c->daemon, &r);
	bool others;
	int err;

	(void)fds;
	if (!s)
		return answer(c, 0);
	others = session_depart(s, r.tgid);
	err = reply(c, 0, s, r.tgid, NULL, 0);
	if (!others)
		session_end(s);
	return err;
}

static int on_sync(struct client *c, const struct profil_header *h, const int *fds)
{
	const struct profil_msg_self *m = (const void *)h;
	struct session_request r = request_of(c, m->cookie_addr);
	struct session *s = session_of(c->daemon, &r);
	int err;

	(void)fds;
	if (!s)
		return answer(c, 0);
	mirror_session(s);
	err = reply(c, 0, s, r.tgid, NULL, 0);
	s->pcs_told = s->targets->ledger->pcs;
	session_check(s);
	return err;
}

static int on_attach(struct client *c, const struct profil_header *h, const int *fds)
{
	const struct profil_msg_attach *m = (const void *)h;
	uint64_t period_ns = m->period_ns ? m->period_ns : c->daemon->config.period_ns;
	pid_t tgid;
	int err;

	if (c->session)
		return answer(c, -EBUSY);
	err = policy_rate(c->daemon, c->peer.uid, period_ns);
	if (!err)
		err = policy_attach(&tgid, c->daemon, c->sock, &c->peer, fds[0], fds[1]);
	if (!err)
		err = policy_start(c->daemon, c->peer.uid, 0, 0, 0, NULL);
	if (!err)
		err = session_attach(&c->session, c->daemon, c, c->peer.uid, tgid, period_ns,
				     m->flags);
	if (!err) {
		/* It may have gone before the kernel knew it as a target, and not after. */
		err = policy_attach(&tgid, c->daemon, c->sock, &c->peer, fds[0], fds[1]);
		if (err)
			session_end(steal(c->session));
	}
	if (err)
		return answer(c, err);
	c->deadline = sd_event_source_unref(c->deadline);
	return reply(c, 0, c->session, tgid, NULL, 0);
}

static int on_detach(struct client *c, const struct profil_header *h, const int *fds)
{
	(void)h;
	(void)fds;
	if (!c->session)
		return answer(c, -EBADF);
	session_stop(c->session);
	client_flush(c, true);
	return reply(c, 0, c->session, 0, NULL, 0);
}

static int on_stats(struct client *c, const struct profil_header *h, const int *fds)
{
	(void)h;
	(void)fds;
	if (!c->session)
		return answer(c, -EBADF);
	return reply(c, 0, c->session, 0, NULL, 0);
}

static int on_list(struct client *c, const struct profil_header *h, const int *fds)
{
	struct profil_msg_list *m;
	unsigned int n = 0;
	int err;

	(void)h;
	(void)fds;
	m = calloc(1, sizeof(*m) + PROFIL_MSG_LIST_MAX * sizeof(m->profile[0]));
	if (!m)
		return answer(c, -ENOMEM);
	for (const struct session *s = c->daemon->sessions; s && n < PROFIL_MSG_LIST_MAX;
	     s = s->next) {
		struct profil_msg_profile *p = &m->profile[n];
		struct ticks ticks;
		uint64_t nbins;

		if (c->peer.uid && c->peer.uid != s->uid)
			continue;
		session_ticks(s, &ticks);
		session_usage(s, &p->nregions, &nbins);
		p->nbins = nbins;
		p->tgid = (__u32)s->tgid;
		p->uid = s->uid;
		p->tick_ns = s->period_ns;
		p->total = ticks.total;
		p->unmatched = ticks.unmatched;
		p->lost = ticks.lost;
		p->reader = s->reader != NULL;
		n++;
	}
	wire_header(&m->h, PROFIL_MSG_LIST, sizeof(*m), sizeof(m->profile[0]), n);
	err = client_send(c, &m->h, NULL, 0);
	free(m);
	return err;
}

static int on_status(struct client *c, const struct profil_header *h, const int *fds)
{
	struct profild *d = c->daemon;
	struct profil_msg_status m = {
		.pid = (__u32)getpid(),
		.chunks = d->sampler->ops->chunk_count(d->sampler),
		.rate_period_ns = d->config.period_ns,
		.fast_period_ns = d->config.fast_period_ns,
		.replay = d->config.replay_path != NULL,
	};

	(void)h;
	(void)fds;
	for (const struct session *s = d->sessions; s; s = s->next) {
		uint32_t nregions;
		uint64_t nbins;

		session_usage(s, &nregions, &nbins);
		m.profiles++;
		m.regions += nregions;
	}
	m.uptime_ns = now_ns(d) - d->started_ns;
	wire_header(&m.h, PROFIL_MSG_STATUS, sizeof(m), 0, 0);
	return client_send(c, &m.h, NULL, 0);
}

/* How each request must look, and who does it. */
static const struct request {
	unsigned int type;
	size_t fixed;
	size_t element;
	unsigned int max;
	unsigned int nfds;
	int (*handle)(struct client *c, const struct profil_header *h, const int *fds);
} requests[] = {
	{ PROFIL_MSG_START, sizeof(struct profil_msg_start), sizeof(struct profil_msg_region),
	  PROFIL_MSG_REGION_MAX, 0, on_start },
	{ PROFIL_MSG_EXTEND, sizeof(struct profil_msg_start), sizeof(struct profil_msg_region),
	  PROFIL_MSG_REGION_MAX, 0, on_start },
	{ PROFIL_MSG_STOP, sizeof(struct profil_msg_self), 0, 0, 0, on_stop },
	{ PROFIL_MSG_SYNC, sizeof(struct profil_msg_self), 0, 0, 0, on_sync },
	{ PROFIL_MSG_REGIONS, sizeof(struct profil_msg_regions), sizeof(struct profil_msg_region),
	  PROFIL_MSG_REGION_MAX, 0, on_regions },
	{ PROFIL_MSG_ATTACH, sizeof(struct profil_msg_attach), 0, 0, 2, on_attach },
	{ PROFIL_MSG_IMAGE, sizeof(struct profil_msg_image), sizeof(struct profil_msg_region),
	  PROFIL_MSG_REGION_MAX, 0, on_image },
	{ PROFIL_MSG_DETACH, sizeof(struct profil_header), 0, 0, 0, on_detach },
	{ PROFIL_MSG_STATS, sizeof(struct profil_header), 0, 0, 0, on_stats },
	{ PROFIL_MSG_LIST, sizeof(struct profil_header), 0, 0, 0, on_list },
	{ PROFIL_MSG_STATUS, sizeof(struct profil_header), 0, 0, 0, on_status },
};

int request_handle(struct client *c, const struct profil_header *h, const int *fds,
		   unsigned int nfds)
{
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		const struct request *r = &requests[i];

		if (r->type != h->type)
			continue;
		if (!wire_fits(h, r->fixed, r->element, r->max) || nfds != r->nfds)
			return -EPROTO;
		/* A request that only stops something is never refused; regions belong to one
		 * before. */
		if (h->type != PROFIL_MSG_STOP && h->type != PROFIL_MSG_REGIONS &&
		    policy_request(c->daemon, c->peer.uid, now_ns(c->daemon)))
			return answer(c, -EAGAIN);
		return r->handle(c, h, fds);
	}
	return -EPROTO;
}
