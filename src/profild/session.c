/* session.c - one profile: of a process that asked for it, or of a reader who watches others */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/scope.h"
#include "mirror.h"
#include "policy.h"
#include "session.h"

static int session_new(struct session **out, struct profild *d, pid_t tgid, uid_t uid)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->daemon = d;
	s->tgid = tgid;
	s->uid = uid;
	*out = s;
	return 0;
}

static void session_link(struct session *s)
{
	s->next = s->daemon->sessions;
	s->daemon->sessions = s;
}

static void ticks_add(struct ticks *sum, const struct target *t, const struct ticks *kernel)
{
	uint64_t raw = t->session->reader ? kernel->raw : 0; /* the others' are somebody's events */
	const struct profil_ledger *l = t->ledger;

	sum->total += kernel->total - kernel->raw + raw + l->events;
	sum->binned += l->drained + l->events - l->unmatched - l->spilt;
	sum->unmatched += kernel->unmatched + l->unmatched;
	sum->lost += kernel->lost + l->spilt;
	sum->raw += raw;
}

void session_ticks(const struct session *s, struct ticks *out)
{
	struct sampler *sampler = s->daemon->sampler;

	*out = s->past;
	for (const struct target *t = s->targets; t; t = t->next) {
		struct ticks kernel;

		sampler->ops->ticks(sampler, t, &kernel);
		ticks_add(out, t, &kernel);
	}
}

void session_usage(const struct session *s, uint32_t *nregions, uint64_t *nbins)
{
	*nregions = 0;
	*nbins = 0;
	for (const struct target *t = s->targets; t; t = t->next) {
		*nregions += t->nregions;
		*nbins += t->nbins;
	}
}

/* Stops the first of the session's targets, keeps its ticks, and forgets it. */
static void drop_target(struct session *s)
{
	struct sampler *sampler = s->daemon->sampler;
	struct target *t = s->targets;
	struct ticks kernel;

	sampler->ops->stop(sampler, t);
	sampler->ops->ticks(sampler, t, &kernel);
	ticks_add(&s->past, t, &kernel);
	sampler->ops->release(sampler, t);
	s->targets = t->next;
	target_free(t);
}

void session_stop(struct session *s)
{
	struct sampler *sampler = s->daemon->sampler;

	memory_forget(s->memory);
	for (struct target *t = s->targets; t; t = t->next)
		sampler->ops->stop(sampler, t);
}

void session_forget(struct session *s)
{
	struct session **place = &s->daemon->sessions;

	while (*place && *place != s)
		place = &(*place)->next;
	if (*place)
		*place = s->next;
	while (s->targets) {
		struct target *t = s->targets;

		s->targets = t->next;
		target_free(t);
	}
	memory_close(s->memory);
	free(s);
}

void session_end(struct session *s)
{
	memory_forget(s->memory);
	while (s->targets)
		drop_target(s);
	session_forget(s);
}

/* Says whether @m holds the cookie where @r says it put it. */
static int check_cookie(struct memory *m, const struct session_request *r)
{
	uint8_t seen[PROFIL_COOKIE_BYTES];
	int err = memory_read(m, r->cookie_addr, seen, sizeof(seen));

	if (err == -ESRCH)
		return err;
	return err || memcmp(seen, r->cookie, sizeof(seen)) ? -EPERM : 0;
}

/*
 * Opens the memory of r->tgid where it still has the image @image. That it holds the cookie is not
 * enough: whoever knows the cookie can pass it on to what he execs.
 */
static int open_memory(struct memory **out, const struct session_request *r, uint64_t image)
{
	struct memory *m = NULL;
	int err = memory_open(&m, r->tgid);

	if (!err)
		err = memory_image(m) == image ? check_cookie(m, r) : -ESRCH;
	if (err) {
		memory_close(m);
		return err;
	}
	*out = m;
	return 0;
}

/*
 * The process may have gone, or have exec'd, between the check of its cookie and the moment that
 * the kernel knew it; after that moment the kernel ends the profile itself.
 */
static int check_still_there(const struct session *s, const struct session_request *r)
{
	struct memory *now = NULL;
	int err = open_memory(&now, r, s->image);

	memory_close(now);
	return err;
}

struct session *session_of(struct profild *d, const struct session_request *r)
{
	bool newborn;
	struct target *t = d->sampler->ops->find(d->sampler, r->tgid, &newborn);

	if (!t || check_cookie(newborn ? *r->memory : t->session->memory, r))
		return NULL;
	return t->session;
}

bool session_lead(struct session *s)
{
	struct sampler *sampler = s->daemon->sampler;
	struct session_request r = { .tgid = sampler->ops->other(sampler, s->targets, s->tgid),
				     .cookie = s->cookie,
				     .cookie_addr = s->cookie_addr };
	struct memory *m;

	if (!r.tgid || open_memory(&m, &r, s->image))
		return false;
	memory_close(s->memory);
	s->memory = m;
	s->tgid = r.tgid;
	return true;
}

bool session_depart(struct session *s, pid_t tgid)
{
	struct sampler *sampler = s->daemon->sampler;

	if (s->tgid == tgid && !session_lead(s))
		s->tgid = 0;
	mirror_session(s); /* as long as it is known whose they are */
	return sampler->ops->leave(sampler, s->targets, tgid);
}

void session_leave(struct session *s, pid_t tgid)
{
	if (!session_depart(s, tgid))
		session_end(s);
}

static int check_request(const struct session_request *r)
{
	uint32_t max = r->width == 2 ? UINT16_MAX : UINT32_MAX;

	if (r->flags & PROFIL_START_PCS)
		return r->width == 8 && r->nregions == 1 ? 0 : -EINVAL;
	if ((r->width != 2 && r->width != 4) || !r->cap || r->cap > max)
		return -EINVAL;
	return 0;
}

/* Where the caller wants to know now: is every buffer there, and writable? */
static int check_buffers(struct session *s, const struct target *t)
{
	for (uint32_t i = 0; i < t->nregions; i++) {
		const struct profil_region *r = &t->region[i];
		int err = memory_writable(s->memory, r->addr, (size_t)r->x.nbins * s->width);

		if (r->owner == i && err)
			return err;
	}
	return 0;
}

/* Makes all of @s that can fail without anybody having noticed. */
static int prepare(struct session *s, const struct session_request *r)
{
	struct target *t;
	int err = check_cookie(*r->memory, r);

	s->memory = steal(*r->memory);
	if (!err)
		err = target_new(&t, s, r->tgid, r->region, r->nregions);
	if (err)
		return err;
	s->image = memory_image(s->memory);
	s->targets = t;
	t->period_ns = s->period_ns;
	t->flags = PROFIL_TARGET_INHERIT;
	if (s->flags & PROFIL_START_PCS) {
		t->flags |= PROFIL_TARGET_RAW;
		t->region[0].x.span = 0; /* no pc is in a bin */
		t->ncounters = 0;
	}
	if (s->flags & PROFIL_START_CHECK)
		err = check_buffers(s, t);
	return err;
}

int session_start(struct session **out, struct profild *d, const struct session_request *r)
{
	struct sampler *sampler = d->sampler;
	struct session *s = NULL, *old = session_of(d, r);
	uint64_t nbins = 0;
	int err = check_request(r);

	for (uint32_t i = 0; i < r->nregions; i++)
		nbins += r->region[i].owner == i ? r->region[i].x.nbins : 0;
	if (!err)
		err = policy_start(d, r->uid, r->flags, r->nregions, nbins, old);
	if (!err)
		err = session_new(&s, d, r->tgid, r->uid);
	if (err)
		return err;
	s->flags = r->flags;
	s->width = r->width;
	s->cap = r->cap;
	s->cookie_addr = r->cookie_addr;
	memcpy(s->cookie, r->cookie, sizeof(s->cookie));
	s->period_ns =
		r->flags & PROFIL_START_FAST ? d->config.fast_period_ns : d->config.period_ns;
	err = prepare(s, r);
	if (err) {
		session_forget(s);
		return err;
	}

	if (old)
		session_leave(old, r->tgid);
	session_link(s);
	err = sampler->ops->start(sampler, s->targets, NULL, 0);
	if (!err)
		err = check_still_there(s, r);
	if (err) {
		session_end(s);
		return err;
	}
	*out = s;
	return 0;
}

void session_check(struct session *s)
{
	struct sampler *sampler = s->daemon->sampler;

	if (sampler->ops->ended(sampler, s->targets))
		session_end(s);
	else if (s->over && s->tgid)
		session_leave(s, s->tgid);
}

/* What a fork child gets when its first tick comes: the parent's profile, its own counters. */
static int adopt(struct session **out, struct session *parent, pid_t tgid, uint32_t life)
{
	struct profild *d = parent->daemon;
	struct target *t = parent->targets;
	struct session_request r = { .tgid = tgid,
				     .cookie = parent->cookie,
				     .cookie_addr = parent->cookie_addr };
	struct session *s = NULL;
	int err = policy_start(d, parent->uid, 0, t->nregions, t->nbins, NULL);

	if (!err)
		err = session_new(&s, d, tgid, parent->uid);
	if (err)
		return err;
	s->flags = parent->flags;
	s->width = parent->width;
	s->cap = parent->cap;
	s->period_ns = parent->period_ns;
	s->cookie_addr = parent->cookie_addr;
	memcpy(s->cookie, parent->cookie, sizeof(s->cookie));
	s->image = parent->image;
	err = open_memory(&s->memory, &r, s->image);
	if (!err)
		err = target_copy(&s->targets, s, tgid, t);
	if (err) {
		session_forget(s);
		return err;
	}
	session_link(s);
	err = d->sampler->ops->start(d->sampler, s->targets, t, life);
	if (err)
		session_end(s);
	else
		*out = s;
	return err;
}

void session_pc(struct session *s, pid_t tgid, uint32_t life, uint64_t pc)
{
	struct sampler *sampler = s->daemon->sampler;
	struct session *child = NULL;
	struct target *t;
	bool newborn;

	if (s->flags & PROFIL_START_PCS && tgid == s->tgid) {
		mirror_pc(s->targets, pc);
		return;
	}
	t = sampler->ops->find(sampler, tgid, &newborn);
	if (t && newborn)
		t = adopt(&child, s, tgid, life) ? NULL : child->targets;
	if (t) {
		mirror_pc(t, pc);
		return;
	}
	/* It has gone meanwhile, or there is no room for it: the tick is nobody's. */
	s->targets->ledger->events++;
	s->targets->ledger->spilt++;
	sampler->ops->leave(sampler, s->targets, tgid);
}

int session_recover(struct profild *d, struct target *t, const struct profil_owner *owner)
{
	struct session_request r = { .tgid = (pid_t)owner->tgid,
				     .cookie = owner->cookie,
				     .cookie_addr = owner->cookie_addr };
	struct session *s = NULL;
	int err;

	r.flags = owner->flags;
	r.width = owner->width;
	r.cap = owner->cap;
	r.nregions = t->nregions;
	err = check_request(&r);
	if (r.flags & PROFIL_START_PCS && t->ncounters)
		err = -EINVAL;
	if (!err)
		err = session_new(&s, d, r.tgid, owner->uid);
	if (err)
		return err;
	s->flags = owner->flags;
	s->width = owner->width;
	s->cap = owner->cap;
	s->period_ns = t->period_ns;
	s->cookie_addr = owner->cookie_addr;
	memcpy(s->cookie, owner->cookie, sizeof(s->cookie));
	s->image = owner->image;
	if (open_memory(&s->memory, &r, s->image))
		s->tgid = 0; /* gone, or another by now; fork children of it may be there still */
	t->session = s;
	s->targets = t;
	session_link(s);
	return 0;
}

void session_owner(const struct session *s, struct profil_owner *out)
{
	*out = (struct profil_owner){
		.live = 1,
		.cookie_addr = s->cookie_addr,
		.tgid = (__u32)s->tgid,
		.uid = s->uid,
		.flags = s->flags,
		.width = s->width,
		.cap = s->cap,
	};
	out->image = s->image;
	memcpy(out->cookie, s->cookie, sizeof(out->cookie));
}

static uint32_t target_flags(uint32_t attach_flags, uid_t uid)
{
	uint32_t flags = PROFIL_TARGET_RAW;

	if (uid)
		flags |= PROFIL_TARGET_UNPRIVILEGED;

	if (attach_flags & PROFIL_ATTACH_INHERIT)
		flags |= PROFIL_TARGET_INHERIT;
	if (attach_flags & PROFIL_ATTACH_FOLLOW)
		flags |= PROFIL_TARGET_FOLLOW;
	if (attach_flags & PROFIL_ATTACH_USER_ONLY)
		flags |= PROFIL_TARGET_USER_ONLY;
	return flags;
}

int session_attach(struct session **out, struct profild *d, struct client *reader, uid_t uid,
		   pid_t tgid, uint64_t period_ns, uint32_t attach_flags)
{
	struct session *s = NULL;
	int err = session_new(&s, d, tgid, uid);

	if (!err)
		err = target_new(&s->targets, s, tgid, NULL, 0);
	if (err) {
		free(s);
		return err;
	}
	s->reader = reader;
	s->period_ns = period_ns;
	s->targets->period_ns = period_ns;
	s->targets->flags = target_flags(attach_flags, uid);
	session_link(s);
	err = d->sampler->ops->start(d->sampler, s->targets, NULL, 0);
	if (err) {
		session_end(s);
		return err;
	}
	*out = s;
	return 0;
}

int session_image(struct target **out, struct session *s, pid_t tgid, uint32_t life,
		  const struct profil_msg_region *region, uint32_t n)
{
	struct sampler *sampler = s->daemon->sampler;
	struct target *t = NULL;
	int err;

	err = target_new(&t, s, tgid, region, n);
	if (err)
		return err;
	for (uint32_t i = 0; i < n; i++)
		t->region[i].addr = 0;
	t->period_ns = s->period_ns;
	t->flags = s->targets->flags;
	t->next = s->targets;
	s->targets = t;
	err = sampler->ops->start(sampler, t, t->next, life);
	if (err) {
		drop_target(s);
		return err;
	}
	*out = t;
	return 0;
}
