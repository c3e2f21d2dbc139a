/* read.c - reads the profiles of a spool by time */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

#include "profilctl/output/load.h"
#include "profile/merge.h"
#include "profilctl/util/exit_status.h"
#include "spool.h"
#include "spool_dir.h"

/* A profile belongs to one of two adjacent spans: the one with its middle. */
static bool is_in(const struct spool_entry *e, const struct time_span *span)
{
	time_t twice = 2 * e->start + e->seconds;

	return e->is_profile && twice >= 2 * span->since && twice < 2 * span->until;
}

/* Says whether the interval of @e contains the middle of @span. */
static bool is_around(const struct spool_entry *e, const struct time_span *span)
{
	time_t end = span->until < TIME_SPAN_END ? span->until : span->since;
	time_t middle = span->since + (end - span->since) / 2;

	return e->is_profile && e->start <= middle && middle < e->start + e->seconds;
}

/* Moves the entries of @span to the front and returns their number. */
static size_t choose(struct spool_entry *all, size_t n, const struct time_span *span)
{
	size_t chosen = 0;

	for (size_t i = 0; i < n; i++) {
		if (is_in(&all[i], span))
			all[chosen++] = all[i];
	}
	for (size_t i = 0; !chosen && i < n; i++) {
		if (is_around(&all[i], span))
			all[chosen++] = all[i];
	}
	return chosen;
}

static int no_spool(const char *path, int err)
{
	if (err == -ENOENT)
		log_err("there is no spool %s; 'systemctl start profil-spool' keeps one, and "
			"--spool names another",
			path);
	else if (err == -EACCES)
		log_err("cannot read the spool %s: permission denied (run as root, or join group "
			"profil)",
			path);
	else
		log_err("cannot read the spool %s: %s", path, strerror(-err));
	return err == -EACCES ? CTL_DENIED : CTL_ERROR;
}

static int nothing(const char *path, const struct spool_entry *all, size_t n,
		   const struct time_span *span)
{
	char since[64], until[64], first[64], last[64];

	time_text(since, sizeof(since), span->since);
	strcpy(until, "now");
	if (span->until < TIME_SPAN_END)
		time_text(until, sizeof(until), span->until);
	if (!n) {
		log_err("the spool %s has no profiles", path);
		return CTL_ERROR;
	}
	time_text(first, sizeof(first), all[0].start);
	time_text(last, sizeof(last), all[n - 1].start + all[n - 1].seconds);
	log_err("the spool %s has no profile from %s to %s: what it has is from %s to %s", path,
		since, until, first, last);
	return CTL_ERROR;
}

static int add_file(struct merge *m, const char *dir, const struct spool_entry *e)
{
	__cleanup(profile_freep) struct profile *p = NULL;
	__cleanup(freep) char *path = NULL;
	int status, err;

	if (asprintf(&path, "%s/%s", dir, e->name) < 0) {
		path = NULL;
		return CTL_ERROR;
	}
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return CTL_OK; /* removed by rotation since the list was read */
	status = load_profile(&p, path);
	if (status)
		return status;
	err = merge_add(m, p);
	if (err == -EDOM)
		log_err("%s: its samples stand for %.6g ms, those before it for %.6g ms: take a "
			"span of time without such a change",
			path, (double)p->tick_ns / 1e6, (double)m->into->tick_ns / 1e6);
	else if (err < 0)
		log_err("cannot read %s: %s", path, strerror(-err));
	return err < 0 ? CTL_ERROR : CTL_OK;
}

/* Names the sum by its span of time. */
static int name(struct profile *p, const struct merge *m, const struct spool_entry *all, size_t n)
{
	char since[64], until[64], *command;

	time_text(since, sizeof(since), all[0].start);
	time_text(until, sizeof(until), all[n - 1].start + all[n - 1].seconds);
	if (asprintf(&command, "%s, %s to %s (%zu profile%s)", p->command, since, until, m->added,
		     m->added == 1 ? "" : "s") < 0)
		return -ENOMEM;
	free(p->command);
	p->command = command;
	return 0;
}

/* Adds up @n files. */
static int sum(struct profile **out, const char *path, const struct spool_entry *all, size_t n)
{
	__cleanup(profile_freep) struct profile *p = profile_new();
	struct merge m = { .into = p };
	size_t bad = 0;

	for (size_t i = 0; p && i < n; i++)
		bad += add_file(&m, path, &all[i]) != CTL_OK;
	if (!p || !m.added || name(p, &m, all, n) < 0) {
		log_err("none of the profiles in the spool %s can be read", path);
		return CTL_ERROR;
	}
	merge_end(&m);
	*out = steal(p);
	return bad ? CTL_PARTIAL : CTL_OK;
}

int spool_read(struct profile **out, const struct options *o, const struct time_span *span)
{
	const char *path = o->spool ? o->spool : SPOOL_DIR_DEFAULT;
	__cleanup(freep) struct spool_entry *all = NULL;
	size_t n, chosen;
	int err = spool_dir_list(&all, &n, path);

	if (err < 0)
		return no_spool(path, err);
	chosen = choose(all, n, span);
	return chosen ? sum(out, path, all, chosen) : nothing(path, all, n, span);
}

int spool_load(struct profile **out, const struct options *o, const char *what)
{
	struct time_span span;

	if (access(what, F_OK) < 0 && time_span_is(&span, what, time(NULL)))
		return spool_read(out, o, &span);
	return load_profile(out, what);
}
