/* top.c - what is hot now, again and again */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/log.h"
#include "core/scope.h"

#include "clean.h"
#include "interval.h"
#include "named.h"
#include "now.h"
#include "rows.h"
#include "screen.h"
#include "symbolize.h"
#include "top.h"
#include "verb.h"
#include "watch.h"

#define INTERVAL_NS 2000000000u
#define BATCH_LINES 24
#define BATCH_COLUMNS 80

struct top {
	struct watch watch;
	struct symbolize_cache cache;
	struct profile *last; /* all that was counted up to the last table */
	struct profile *now;  /* what was counted since then */
	struct screen *screen;
	__u64 last_ns;
	__u64 unmatched; /* up to the last table */
	__u64 period_ns; /* of the table that is shown */
};

/* Sums up what has come since the last time. */
static int look(struct top *t)
{
	struct profile *all = profile_borrow(t->watch.profile),
		       *p = profile_borrow(t->watch.profile);
	__u64 at_ns = now_ns(), nowhere = watch_unmatched(&t->watch);
	int err = all && p ? watch_snapshot(&t->watch, all) : -ENOMEM;

	if (!err)
		err = profile_difference(p, t->last, all);
	symbolize_cache_renew(&t->cache, t->watch.profile);
	if (!err)
		err = symbolize(p, &t->cache);
	if (err < 0) {
		profile_give_back(all);
		profile_give_back(p);
		return err;
	}
	p->unmatched = nowhere - t->unmatched;
	p->total = p->binned + p->unmatched;
	profile_give_back(t->last);
	profile_give_back(t->now);
	t->last = all;
	t->now = p;
	t->period_ns = at_ns - t->last_ns;
	t->last_ns = at_ns;
	t->unmatched = nowhere;
	return 0;
}

/* What the names have; on a wide terminal the objects are not to be far from them. */
static int name_columns(size_t columns)
{
	return columns > 160 ? 100 : columns > 61 ? (int)columns - 60 : 1;
}

static void row(FILE *out, const struct profile *p, const struct row *r, size_t columns)
{
	struct interval i = interval_of(r->samples, p->total);
	char name[1024], object[256];
	int room = name_columns(columns);
	size_t n;
	const char *shown = name;

	clean(name, sizeof(name), r->name);
	clean(object, sizeof(object), profile_base_name(p->objects[r->object].path));
	/* The object is told beside it: what tells them apart must not be cut. */
	n = strlen(object);
	if (!strncmp(name, object, n) && name[n] == '+')
		shown += n;
	fprintf(out, "%6.2f  %5.1f-%5.1f  %8llu  %8.3f  %-*.*s  %.18s\n",
		profile_percent(p, r->samples), i.low, i.high, r->samples,
		(double)r->samples * (double)p->tick_ns / 1e9, room, room, shown, object);
}

int top_write(FILE *out, const struct profile *p, const struct top_table *t)
{
	double seconds = (double)t->period_ns / 1e9;
	double cpu = (double)p->total * (double)p->tick_ns / 1e9;
	struct rows rows;
	char when[16] = "";
	time_t now = time(NULL);
	struct tm tm;
	int err = rows_init(&rows, p, ROWS_FUNCTION);

	strftime(when, sizeof(when), "%H:%M:%S", localtime_r(&now, &tm));
	fprintf(out, "profilctl top - %s, %.1f s: %llu samples at %.6g Hz, %zu processes\n", when,
		seconds, p->total, p->tick_ns ? 1e9 / (double)p->tick_ns : 0, t->processes);
	fprintf(out, "%.3f s of CPU time, that is %.2f CPUs; %llu samples in no mapping\n", cpu,
		seconds > 0 ? cpu / seconds : 0, p->unmatched);
	fprintf(out, "self %%   95 %% of it   samples   seconds  %-*s  object\n",
		name_columns(t->columns), "function");
	for (size_t i = 0; i < rows.n && i + 3 < t->lines && !err; i++)
		row(out, p, &rows.row[i], t->columns);
	rows_fini(&rows);
	return err;
}

static int show(struct top *t)
{
	__cleanup(freep) char *text = NULL;
	struct top_table table = { t->period_ns, 0, BATCH_LINES, BATCH_COLUMNS };
	size_t n;
	FILE *out;
	int err;

	profile_borrow_again(t->now, t->watch.profile);
	for (size_t i = 0; i < t->watch.nsessions; i++)
		table.processes += !t->watch.sessions[i].ended;
	if (!t->screen) {
		err = top_write(stdout, t->now, &table);
		putchar('\n');
		return fflush(stdout) && !err ? -errno : err;
	}
	screen_size(t->screen, &table.lines, &table.columns);
	out = open_memstream(&text, &n);
	if (!out)
		return -ENOMEM;
	err = top_write(out, t->now, &table);
	if (fclose(out) || err)
		return err ? err : -ENOMEM;
	screen_show(t->screen, text);
	return 0;
}

/* Waits for the time of the next table: 1; or for the end: 0. */
static int wait_for_next(struct top *t, __u64 next_ns)
{
	bool changed;
	int on = 1;

	while (on > 0 && now_ns() < next_ns) {
		on = watch_wait(&t->watch, next_ns);
		if (on <= 0 || !t->screen)
			continue;
		if (!screen_keys(t->screen, &changed))
			return 0;
		if (changed && t->now)
			on = show(t) ?: 1;
	}
	return on;
}

static int run(struct top *t)
{
	const struct options *o = t->watch.options;
	__u64 every_ns = o->interval_ns ? o->interval_ns : INTERVAL_NS;
	int on = 1, err;

	t->last_ns = now_ns();
	for (__u64 n = 0; on > 0 && (!o->count || n < o->count); n++) {
		on = wait_for_next(t, t->last_ns + every_ns);
		if (on < 0)
			return on;
		/* What was counted up to the end is shown as well. */
		if (look(t) < 0)
			return -ENOMEM;
		err = on || !t->screen ? show(t) : 0;
		if (err < 0)
			return err;
	}
	return 0;
}

/* Those that are named, those that are selected, or all. */
static int attach(struct watch *w, const pid_t *pids)
{
	const struct options *o = w->options;
	int status = CTL_OK;

	if (!pids)
		return procfs_is_selective(&o->select) ? watch_select(w) : watch_everybody(w);
	for (int i = 0; i < o->argc && !status; i++)
		status = watch_attach(w, pids[i], true);
	return status;
}

static int choose(pid_t **pids, const struct options *o)
{
	if (!o->argc)
		return CTL_OK;
	if (!procfs_is_selective(&o->select))
		return named_pids(pids, o);
	log_err("top: processes are named, or selected by an option");
	return CTL_USAGE;
}

static int top(struct top *t, const struct options *o, const pid_t *pids)
{
	int status = watch_init(&t->watch, o), err;

	if (!status)
		status = attach(&t->watch, pids);
	if (status)
		return status;
	self_relax(&t->watch.self);
	t->last = profile_borrow(t->watch.profile);
	if (!t->last)
		return CTL_ERROR;
	if (!o->batch && !screen_open(&t->screen))
		watch_input(&t->watch, STDIN_FILENO);
	err = run(t);
	screen_close(t->screen);
	status = watch_missing(&t->watch);
	if (!err)
		return status;
	log_err("top ends: %s", err == -ENODATA ? "profild has ended" : strerror(-err));
	return CTL_PARTIAL;
}

int verb_top(const struct options *o)
{
	__cleanup(freep) pid_t *pids = NULL;
	struct top t = { 0 };
	int status = choose(&pids, o);

	if (status)
		return status;
	status = top(&t, o, pids);
	profile_give_back(t.last);
	profile_give_back(t.now);
	symbolize_cache_fini(&t.cache);
	watch_fini(&t.watch);
	return status;
}
