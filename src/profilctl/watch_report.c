/* watch_report.c - what has been counted: up to now, and in the end */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "core/log.h"
#include "core/scope.h"

#include "now.h"
#include "output.h"
#include "symbolize.h"
#include "verb.h"
#include "watch.h"

/* A tick that is under way while we detach lands microseconds later. */
#define SETTLE_MS 10

int watch_snapshot(const struct watch *w, struct profile *p)
{
	int err = profile_add_places(p, w->profile);

	for (size_t i = 0; i < w->nsessions && !err; i++)
		err = follow_snapshot(w->sessions[i].follow, p);
	return err;
}

__u64 watch_unmatched(const struct watch *w)
{
	__u64 all = w->past.unmatched;

	for (size_t i = 0; i < w->nsessions; i++)
		all += follow_unmatched(w->sessions[i].follow);
	return all;
}

int watch_slice(struct watch *w)
{
	struct profile *now = profile_borrow(w->profile);
	int err = now ? watch_snapshot(w, now) : -ENOMEM;

	if (!err)
		return slices_take(&w->slices, now);
	profile_give_back(now);
	return err;
}

/* All sessions' counts together; *@missing were counted, but have not been seen anywhere. */
static struct profil_msg_reply sum(const struct watch *w, __u64 *missing)
{
	struct profil_msg_reply all = w->past;
	__u64 seen = w->profile->binned;

	for (size_t i = 0; i < w->nsessions; i++) {
		const struct session *s = &w->sessions[i];

		all.total += s->totals.total;
		all.unmatched += s->totals.unmatched + follow_unmatched(s->follow);
		all.lost += s->totals.lost;
		seen += follow_counted(s->follow);
	}
	seen += all.unmatched + all.lost;
	*missing = all.total > seen ? all.total - seen : 0;
	return all;
}

/* Takes in what has come for any of them. */
static int catch_up(struct watch *w)
{
	int err = 0;

	for (size_t i = 0; i < w->nsessions && !err; i++) {
		if (!w->broken)
			reader_pump(w->sessions[i].reader);
		err = follow_events(w->sessions[i].follow);
	}
	return err;
}

/* Waits for what is under way, and makes total = binned + unmatched + lost. */
static int tally(struct watch *w)
{
	__u64 deadline = now_ns() + SETTLE_MS * 1000000u, missing;
	struct profile *p = w->profile;
	struct profil_msg_reply all;
	int err = 0;

	sum(w, &missing);
	while (!err && missing && w->nsessions && now_ns() < deadline) {
		struct pollfd events = { reader_fd(w->sessions[0].reader), POLLIN, 0 };

		poll(&events, 1, 1); /* mapped counters wake nobody */
		err = catch_up(w);
		sum(w, &missing);
	}
	for (size_t i = 0; i < w->nsessions && !err; i++)
		err = follow_settle(w->sessions[i].follow);
	if (err < 0)
		return err;
	all = sum(w, &missing);
	p->unmatched = all.unmatched;
	p->lost = all.lost + missing;
	p->total = p->binned + p->unmatched + p->lost;
	return 0;
}

int watch_end(struct watch *w)
{
	struct symbolize_cache cache = { 0 };
	int err = 0;

	for (size_t i = 0; i < w->nsessions; i++) {
		follow_stop(w->sessions[i].follow);
		if (w->broken || session_detach(&w->sessions[i]) < 0)
			w->broken = true;
	}
	for (size_t i = 0; w->broken && i < w->nsessions; i++)
		w->sessions[i].totals = (struct profil_msg_reply){ 0 };
	err = catch_up(w);
	if (!err)
		err = tally(w);
	for (size_t i = 0; i < w->nsessions; i++)
		reader_close(steal(w->sessions[i].reader));
	daemon_end(steal(w->daemon));
	self_relax(&w->self);
	/* All is settled: what is left of the last slice is in the profile. */
	if (!err && w->options->slice_ns)
		err = watch_slice(w);
	if (!err)
		err = symbolize(w->profile, &cache);
	if (!err && w->options->slice_ns)
		err = slices_into(&w->slices, w->profile, &cache);
	symbolize_cache_fini(&cache);
	if (!err)
		return CTL_OK;
	log_err("cannot make a report: %s", strerror(-err));
	return CTL_ERROR;
}

int watch_missing(const struct watch *w)
{
	bool missed = w->newcomers && newcomers_missed(w->newcomers);

	if (missed)
		log_warning("more processes began at a time than we could hear of; some may be "
			    "missing");
	if (!w->nleft_out)
		return missed ? CTL_PARTIAL : CTL_OK;
	log_warning(
		"there was no room for %zu more process%s; see 'profilctl list' and 'ulimit -n'",
		w->nleft_out, w->nleft_out > 1 ? "es" : "");
	return CTL_PARTIAL;
}

int watch_finish(struct watch *w)
{
	const struct profile *p = w->profile;
	int status = watch_end(w);

	if (!status)
		status = output_write(steal(w->out), w->options, p);
	if (status)
		return status;
	status = watch_missing(w);
	if (p->lost > p->total / 100)
		log_warning("%llu of %llu samples were lost; take a lower rate", p->lost, p->total);
	return w->broken || p->lost > p->total / 100 ? CTL_PARTIAL : status;
}
