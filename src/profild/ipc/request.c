/* request.c - handles a client's requests */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "authorization.h"
#include "observer.h"
#include "request.h"
#include "profild/observe/retired_tables.h"
#include "profild/profile/own_profile.h"
#include "profild/profile/sampler.h"

/* The time at which the event loop began this turn. */
static uint64_t loop_ns(const struct profild *d)
{
	uint64_t usec = 0;

	sd_event_now(d->event, CLOCK_MONOTONIC, &usec);
	return usec * 1000;
}

/* Answers with @error (negative errno or 0) and the counts of @own (or NULL). */
static int request_reply(struct client *c, int error, const struct own_profile *own)
{
	struct profil_msg_reply r = { .error = (__u32)-error, .tgid = (__u32)c->peer.cred.pid };
	struct samples samples;

	wire_header(&r.h, PROFIL_MSG_REPLY, sizeof(r), 0, 0);
	if (own) {
		own_profile_samples(own, &samples);
		r.tick_ns = own->period_ns;
		r.total = samples.total;
		r.unmatched = samples.unmatched;
		r.lost = samples.lost;
		r.stored = own->target ? own->target->ledger->pcs : 0;
	}
	return client_send(c, &r.h, NULL, 0);
}

static int request_answer(struct client *c, int error)
{
	return request_reply(c, error, NULL);
}

/* Answers a START, STOP or SYNC when it has been carried out. */
static void request_done(void *arg, int err, const struct own_profile *own)
{
	struct client *c = arg;

	if (c->sock >= 0 && err != -ESTALE)
		err = request_reply(c, err, own);
	client_go_on(c, err);
}

static struct own_request *request_of(struct client *c)
{
	c->request = (struct own_request){ .done = request_done, .arg = c };
	return &c->request;
}

/*
 * Prepares a slot for a copy of @old's memory, once for each connection. -ESTALE: that is not the
 * profile that the process had when it got the cookie. The connection is closed then, and the
 * client tries again.
 */
static int start_borrow(struct client *c, const struct own_profile *old, uint64_t *lender)
{
	int err;

	if (!old || old->id != c->lender)
		return -ESTALE;
	err = remote_init(&c->memory, c->lane);
	if (err)
		return err;
	c->memory.image = old->image;
	*lender = c->lender;
	c->lender = 0;
	return 0;
}

static int start_begin(struct client *c)
{
	const struct profil_msg_start *m = c->pending;
	struct own_profile_params p = {
		.tgid = c->peer.cred.pid,
		.user = c->user,
		.cookie = c->cookie,
		.memory = &c->memory,
		.cookie_addr = m->cookie_addr,
		.flags = m->flags,
		.width = m->width,
		.cap = m->cap,
		.region = c->region,
		.nregions = c->nregions,
	};
	struct own_profile *old;
	bool unbound;
	uint32_t generation;
	int err = own_profile_find(&old, c->daemon, p.tgid, &unbound, &generation);

	if (err)
		return err;
	if (m->h.type == PROFIL_MSG_EXTEND && !old)
		return -ESRCH;
	p.replaces = old;
	err = authorization_start(c, m->flags) ?: c->lender ? start_borrow(c, old, &p.lender) : 0;
	return err ?: own_profile_start(request_of(c), c->daemon, &p);
}

/* Carries out a START or EXTEND whose regions have all arrived. */
static int start_carry_out(struct client *c)
{
	int err = start_begin(c);

	if (err)
		return err == -ESTALE ? err : request_answer(c, err);
	c->waiting = true;
	return 0;
}

/* Adds @n regions to a START or EXTEND; starts it when all have arrived. */
static int start_gather(struct client *c, const struct profil_msg_region *region, uint32_t n)
{
	int err;

	if (n > c->nregions - c->have)
		return -EPROTO;
	memcpy(c->region + c->have, region, n * sizeof(*region));
	c->have += n;
	if (c->have < c->nregions)
		return n ? 0 : -EPROTO;

	err = start_carry_out(c);
	free(c->pending);
	free(c->region);
	c->pending = NULL;
	c->region = NULL;
	return err;
}

static int request_start(struct client *c, const struct profil_header *h, bool *fds)
{
	const struct profil_msg_start *m = (const void *)h;

	if (c->pending)
		return -EPROTO;
	if (m->nregions > PROFIL_TARGET_REGIONS)
		return request_answer(c, -E2BIG);
	c->pending = malloc(sizeof(*m));
	c->region = calloc(m->nregions ? m->nregions : 1, sizeof(*c->region));
	if (!c->pending || !c->region)
		return -ENOMEM;
	memcpy(c->pending, m, sizeof(*m));
	c->nregions = m->nregions;
	c->have = 0;
	return start_gather(c, m->region, h->count);
}

static int request_regions(struct client *c, const struct profil_header *h, bool *fds)
{
	const struct profil_msg_regions *m = (const void *)h;

	return c->pending ? start_gather(c, m->region, h->count) : -EPROTO;
}

/*
 * STOP or SYNC of the sender's own profile: the kernel's credentials are proof enough. During a
 * START of the process it gets -EBUSY and may ask again.
 */
static int request_own(struct client *c, bool leave)
{
	struct own_profile *own;
	bool unbound;
	uint32_t generation;
	int err = own_profile_find(&own, c->daemon, c->peer.cred.pid, &unbound, &generation);

	if (err || !own)
		return request_answer(c, err);
	own_profile_ask(request_of(c), own, leave ? c->peer.cred.pid : 0);
	c->waiting = true;
	return 0;
}

static int request_stop(struct client *c, const struct profil_header *h, bool *fds)
{
	return request_own(c, true);
}

static int request_sync(struct client *c, const struct profil_header *h, bool *fds)
{
	return request_own(c, false);
}

static int request_detach(struct client *c, const struct profil_header *h, bool *fds)
{
	return c->attachment ? observer_detach(c) : request_answer(c, -EBADF);
}

static int request_stats(struct client *c, const struct profil_header *h, bool *fds)
{
	return c->attachment ? observer_stats(c) : request_answer(c, -EBADF);
}

static int request_list(struct client *c, const struct profil_header *h, bool *fds)
{
	struct profil_msg_list *m;
	unsigned int n = 0;
	int err;

	m = calloc(1, sizeof(*m) + PROFIL_MSG_LIST_MAX * sizeof(m->profile[0]));
	if (!m)
		return request_answer(c, -ENOMEM);
	for (const struct own_profile *own = c->daemon->profiles; own && n < PROFIL_MSG_LIST_MAX;
	     own = own->next) {
		struct profil_msg_profile *p = &m->profile[n];
		const struct target *t = own->target;
		struct samples samples;

		if (!c->peer.privileged && c->peer.cred.uid != user_uid(own->user))
			continue;
		own_profile_samples(own, &samples);
		p->nregions = t ? t->nregions : 0;
		p->nbins = t ? t->nbins : 0;
		p->tgid = (__u32)own->tgid;
		p->uid = user_uid(own->user);
		p->tick_ns = own->period_ns;
		p->total = samples.total;
		p->unmatched = samples.unmatched;
		p->lost = samples.lost;
		p->unfollowed = samples.unfollowed;
		n++;
	}
	n += observer_list(c, m->profile + n, PROFIL_MSG_LIST_MAX - n);
	wire_header(&m->h, PROFIL_MSG_LIST, sizeof(*m), sizeof(m->profile[0]), n);
	err = client_send(c, &m->h, NULL, 0);
	free(m);
	return err;
}

struct users {
	struct profil_msg_status *m;
	struct quota *quota;
	struct sampler *sampler;
};

static void status_add_user(void *arg, const struct user *u)
{
	struct users *users = arg;
	struct profil_msg_user *out = &users->m->user[users->m->h.count];

	if (users->m->h.count == PROFIL_MSG_USER_MAX)
		return;
	users->m->h.count++;
	*out = (struct profil_msg_user){ .uid = u ? user_uid(u) : (__u32)-1,
					 .root = u && user_is_root(u) };
	for (int i = 0; i < N_RESOURCES; i++) {
		out->used[i] = quota_used(users->quota, u, i);
		out->limit[i] = quota_limit(users->quota, u, i);
	}
	out->used[RES_CHILDREN] = users->sampler->ops->children(
		users->sampler, u ? user_account_uid(u) : (uid_t)-1, out->root);
}

static void status_fill(struct client *c, struct profil_msg_status *m)
{
	struct profild *d = c->daemon;
	struct users users = { .m = m, .quota = d->quota, .sampler = d->sampler };

	retired_tables_sweep(d->retired);
	m->pid = (__u32)getpid();
	m->profiles = (__u32)quota_used(d->quota, NULL, RES_PROFILES);
	m->regions = (__u32)quota_used(d->quota, NULL, RES_REGIONS);
	m->chunks = d->sampler->ops->chunk_count(d->sampler);
	m->rate_period_ns = d->config.period_ns;
	m->fast_period_ns = d->config.fast_period_ns;
	m->replay = d->config.replay_path != NULL;
	m->image_lookup = d->sampler->image_lookup;
	m->uptime_ns = loop_ns(d) - d->started_ns;
	status_add_user(&users, NULL);
	if (c->peer.privileged)
		quota_each(d->quota, status_add_user, &users);
	else
		status_add_user(&users, c->user);
}

static int request_status(struct client *c, const struct profil_header *h, bool *fds)
{
	struct profil_msg_status *m =
		calloc(1, sizeof(*m) + PROFIL_MSG_USER_MAX * sizeof(m->user[0]));
	int err;

	if (!m)
		return request_answer(c, -ENOMEM);
	status_fill(c, m);
	wire_header(&m->h, PROFIL_MSG_STATUS, sizeof(*m), sizeof(m->user[0]), m->h.count);
	err = client_send(c, &m->h, NULL, 0);
	free(m);
	return err;
}

/* The size of each request, and its handler. */
static const struct request {
	unsigned int type;
	size_t fixed;
	size_t element;
	unsigned int max;
	unsigned int nfds;
	client_handler *handle;
} requests[] = {
	{ PROFIL_MSG_START, sizeof(struct profil_msg_start), sizeof(struct profil_msg_region),
	  PROFIL_MSG_REGION_MAX, 0, request_start },
	{ PROFIL_MSG_EXTEND, sizeof(struct profil_msg_start), sizeof(struct profil_msg_region),
	  PROFIL_MSG_REGION_MAX, 0, request_start },
	{ PROFIL_MSG_STOP, sizeof(struct profil_msg_self), 0, 0, 0, request_stop },
	{ PROFIL_MSG_SYNC, sizeof(struct profil_msg_self), 0, 0, 0, request_sync },
	{ PROFIL_MSG_REGIONS, sizeof(struct profil_msg_regions), sizeof(struct profil_msg_region),
	  PROFIL_MSG_REGION_MAX, 0, request_regions },
	{ PROFIL_MSG_DETACH, sizeof(struct profil_header), 0, 0, 0, request_detach },
	{ PROFIL_MSG_STATS, sizeof(struct profil_header), 0, 0, 0, request_stats },
	{ PROFIL_MSG_OBSERVE, sizeof(struct profil_msg_observe), 0, 0, 0, observer_observe },
	{ PROFIL_MSG_MACHINE, sizeof(struct profil_msg_machine), 0, 0, 0, observer_machine },
	{ PROFIL_MSG_BEGIN, sizeof(struct profil_header), 0, 0, 0, observer_begin },
	{ PROFIL_MSG_ADD, sizeof(struct profil_header), 0, 0, 2, observer_add },
	{ PROFIL_MSG_LIST, sizeof(struct profil_header), 0, 0, 0, request_list },
	{ PROFIL_MSG_STATUS, sizeof(struct profil_header), 0, 0, 0, request_status },
};

int request_handle(struct client *c, const struct profil_header *h, bool *fds)
{
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		const struct request *r = &requests[i];

		if (r->type != h->type)
			continue;
		if (!wire_fits(h, r->fixed, r->element, r->max) || *fds != (r->nfds > 0))
			return -EPROTO;
		/* STOP is never refused; REGIONS are part of the request before. */
		if (h->type != PROFIL_MSG_STOP && h->type != PROFIL_MSG_REGIONS &&
		    user_request(c->user, loop_ns(c->daemon)))
			return request_answer(c, -EAGAIN);
		return r->handle(c, h, fds);
	}
	return -EPROTO;
}
