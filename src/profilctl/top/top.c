/* top.c - shows the hottest functions at intervals */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/cleanup.h"
#include "base/clocks.h"

#include "profilctl/verbs/pid_args.h"
#include "top_calls.h"
#include "top_screen.h"
#include "symbols/symbolize.h"
#include "profile/stack_ends.h"
#include "table/sleeper_reader.h"
#include "profile/json.h"
#include "profilctl/verbs/annotate.h"
#include "top_table.h"
#include "top_view.h"
#include "profilctl/verbs/verb.h"
#include "profilctl/collect/recorder.h"
#include "profilctl/verbs/scope.h"

#define INTERVAL_NS 2000000000u
#define WIDE_GROUPS 8192 /* groups in the table of all processes, until it is renewed */
#define BATCH_LINES 24
#define BATCH_COLUMNS 80

struct top {
	struct recorder recorder;
	struct symbolize_cache cache;
	struct profile *last; /* all counts at the last screen */
	struct profile *now;  /* counts since then */
	struct screen *screen;
	struct top_view view;
	char *function;	    /* annotated function, as text; NULL: none */
	struct function of; /* function whose callers are shown */
	__u64 last_ns;
	__u64 period_ns; /* length of the shown interval */
};

/* Computes the counts since t->last, and symbolizes only these places. */
static int difference(struct top *t, struct profile *p, struct profile *all)
{
	int err = profile_difference(p, t->last, all);

	p->unmatched =
		all->unmatched > t->last->unmatched ? all->unmatched - t->last->unmatched : 0;
	p->lost = all->lost > t->last->lost ? all->lost - t->last->lost : 0;
	p->calls_folded = all->calls_folded - t->last->calls_folded;
	p->total = p->binned + p->unmatched + p->lost;
	p->processes = profile_count_processes(p);
	symbolize_cache_renew(&t->cache, t->recorder.profile, symbolize_cache_minute_ago());
	t->cache.reopen = table_reader_reopen;
	t->cache.reader = &t->recorder.reader;
	if (!err && all->calls.n)
		err = call_tree_difference(&p->calls, &t->last->calls, &all->calls,
					   p->total - p->lost);
	return err ? err : symbolize(p, &t->cache);
}

/* Adds the waits that have not ended to @all. @p, too, is of the time of threads. */
static int look_at_waits(struct top *t, struct profile *all, struct profile *p, __u64 at_ns)
{
	p->event = strdup(PROFILE_WALL);
	p->period = p->tick_ns;
	return p->event ? sleepers_read(&t->recorder.reader, all, at_ns) : -ENOMEM;
}

/* Reads the samples since the last call. */
static int look(struct top *t)
{
	struct profile *all = profile_borrow(t->recorder.profile);
	struct profile *p = profile_borrow(t->recorder.profile);
	__u64 at_ns = now_ns();
	int err = all && p ? recorder_snapshot(&t->recorder, all) : -ENOMEM;

	if (!err && options_wall(t->recorder.options))
		err = look_at_waits(t, all, p, at_ns);
	if (!err) {
		profile_borrow_again(p, t->recorder.profile);
		profile_borrow_again(t->last, t->recorder.profile);
		err = difference(t, p, all);
	}
	if (err < 0) {
		profile_give_back(all);
		profile_give_back(p);
		return err;
	}
	profile_give_back(t->last);
	profile_give_back(t->now);
	t->last = all;
	t->now = p;
	t->period_ns = at_ns - t->last_ns;
	t->last_ns = at_ns;
	return 0;
}

/* Prints the profile of one interval as a JSON object in one line. */
static int print_json(struct top *t)
{
	char command[] = "top";
	int err;

	t->now->command = command;
	t->now->started = time(NULL);
	t->now->duration_ns = t->period_ns;
	err = json_write(stdout, t->now, false);
	t->now->command = NULL;
	return fflush(stdout) && !err ? -errno : err;
}

static int print(struct top *t)
{
	struct top_table table = { .period_ns = t->period_ns,
				   .lines = BATCH_LINES,
				   .columns = BATCH_COLUMNS };
	struct top_rows rows;
	int err;

	err = top_rows_init(&rows, t->now, TOP_BY_SAMPLES, NULL);
	if (!err) {
		top_write(stdout, t->now, &rows, &table);
		if (rows.n && has_stacks(t->now))
			err = top_calls_write(stdout, t->now, rows.row[0].function, BATCH_COLUMNS);
		putchar('\n');
	}
	top_rows_fini(&rows);
	return fflush(stdout) && !err ? -errno : err;
}

/* Keeps the cursor on a row, and the row on the screen. */
static void place_cursor(struct top_view *v, struct top_table *table, size_t n)
{
	size_t room = table->lines > TOP_HEADING + 1 ? table->lines - TOP_HEADING : 1;

	if (v->cursor >= n)
		v->cursor = n ? n - 1 : 0;
	table->first = v->cursor >= room ? v->cursor - room + 1 : 0;
}

static int table_draw(struct top *t, FILE *out, struct top_table *table, int *chosen)
{
	struct top_view *v = &t->view;
	char note[128];
	struct top_rows rows;
	int err = top_rows_init(&rows, t->now, v->order, v->filter);

	top_view_note(v, note, sizeof(note));
	table->note = *note ? note : NULL;
	place_cursor(v, table, rows.n);
	if (!err)
		top_write(out, t->now, &rows, table);
	*chosen = rows.n ? (int)(TOP_HEADING + v->cursor - table->first) : -1;
	top_rows_fini(&rows);
	return err;
}

/* Draws another page: the heading of @text, and its lines from @first. */
static void page_draw(FILE *out, const char *text, size_t *first)
{
	size_t n = strcspn(text, "\n");

	fprintf(out, "%.*s\n", (int)n, text);
	text += n + (text[n] == '\n');
	for (size_t i = 0; i < *first; i++) {
		const char *next = strchr(text, '\n');

		if (!next || !next[1]) {
			*first = i;
			break;
		}
		text = next + 1;
	}
	fputs(text, out);
}

/* Draws the calls of the shown interval. */
static int calls_draw(struct top *t, FILE *out, size_t columns)
{
	__cleanup(freep) char *text = NULL;
	size_t n;
	FILE *page = open_memstream(&text, &n);
	int err = page ? top_calls_write(page, t->now, t->view.page == TOP_CALLERS ? &t->of : NULL,
					 columns)
		       : -ENOMEM;

	if (page && fclose(page))
		err = -ENOMEM;
	if (!err)
		page_draw(out, text, &t->view.scroll);
	return err;
}

static int draw(struct top *t)
{
	__cleanup(freep) char *text = NULL;
	struct top_table table = { .period_ns = t->period_ns };
	int chosen = -1, err = 0;
	size_t n;
	FILE *out;

	screen_size(t->screen, &table.lines, &table.columns);
	out = open_memstream(&text, &n);
	if (!out)
		return -ENOMEM;
	if (t->view.page == TOP_HELP)
		page_draw(out, top_view_help, &t->view.scroll);
	else if (t->view.page == TOP_CALLERS || t->view.page == TOP_TREE)
		err = calls_draw(t, out, table.columns);
	else if (t->view.page == TOP_FUNCTION)
		page_draw(out, t->function ? t->function : "", &t->view.scroll);
	else
		err = table_draw(t, out, &table, &chosen);
	if (fclose(out) || err)
		return err ? err : -ENOMEM;
	screen_show(t->screen, text, chosen);
	return 0;
}

static int show(struct top *t)
{
	profile_borrow_again(t->now, t->recorder.profile);
	if (t->screen)
		return draw(t);
	return t->recorder.options->format ? print_json(t) : print(t);
}

/* Annotates the function at the cursor, with the samples of the shown interval. */
static int zoom(struct top *t)
{
	struct top_view *v = &t->view;
	struct top_rows rows;
	size_t lines, columns, n;
	FILE *out;
	int err;

	screen_size(t->screen, &lines, &columns);
	profile_borrow_again(t->now, t->recorder.profile);
	err = top_rows_init(&rows, t->now, v->order, v->filter);
	if (!err && v->cursor < rows.n) {
		free(steal(t->function));
		out = open_memstream(&t->function, &n);
		err = out ? annotate_write(out, t->recorder.options, t->now,
					   rows.row[v->cursor].function, columns)
			  : -ENOMEM;
		if (out && fclose(out))
			err = -ENOMEM;
		v->page = TOP_FUNCTION;
		v->scroll = 0;
	}
	top_rows_fini(&rows);
	return err == -ENOMEM ? err : 0;
}

/* Stores the function at the cursor; without one, all calls are shown. */
static int choose_function(struct top *t)
{
	struct top_view *v = &t->view;
	struct top_rows rows;
	int err;

	profile_borrow_again(t->now, t->recorder.profile);
	err = top_rows_init(&rows, t->now, v->order, v->filter);
	free(t->of.name);
	t->of = (struct function){ 0 };
	if (!err && v->cursor < rows.n) {
		t->of = *rows.row[v->cursor].function;
		t->of.slices = NULL;
		t->of.name = t->of.name ? strdup(t->of.name) : NULL;
	} else {
		v->page = TOP_TREE;
	}
	top_rows_fini(&rows);
	return err;
}

/* Handles the pressed keys. Returns 1, 0 to quit, or a negative errno. */
static int take_keys(struct top *t)
{
	bool redraw = false;
	size_t lines, columns;
	int key, err = 0;

	screen_size(t->screen, &lines, &columns);
	while (!err && (key = screen_key(t->screen))) {
		enum top_answer a = top_view_key(&t->view, key, lines / 2);

		if (a == TOP_QUIT)
			return 0;
		if (a == TOP_ZOOM && t->now)
			err = zoom(t);
		if (a == TOP_CALLS && t->now)
			err = choose_function(t);
		redraw |= a != TOP_NOTHING;
	}
	if (!err && redraw && t->now)
		err = show(t);
	return err ? err : 1;
}

/* Waits until @next_ns. Returns 1, 0 at the end, or a negative errno. */
static int wait_for_next(struct top *t, __u64 next_ns)
{
	int on = 1;

	while (on > 0 && (now_ns() < next_ns || t->view.paused)) {
		on = recorder_wait(&t->recorder, t->view.paused ? now_ns() + INTERVAL_NS : next_ns);
		if (on > 0 && t->screen)
			on = take_keys(t);
	}
	return on;
}

/*
 * Short-lived processes fill up the table of groups, so it is replaced by an empty one, which
 * bounds memory; the daemon does so with the machine's. The screen keeps its rows until the next
 * interval.
 */
static int renew(struct top *t)
{
	const struct profile *from;
	int err;

	profile_give_back(t->last);
	profile_give_back(t->now);
	t->last = t->now = NULL;
	free(t->of.name); /* its object has another number, or none */
	t->of = (struct function){ 0 };
	if (t->view.page == TOP_CALLERS)
		t->view.page = TOP_TABLE;
	symbolize_cache_fini(&t->cache);
	err = recorder_renew(&t->recorder);
	if (err < 0)
		return err;
	from = t->recorder.profile;
	t->last_ns = recorder_began_ns(&t->recorder);
	t->last = profile_borrow(from);
	t->now = profile_borrow(from);
	return t->last && t->now ? 0 : -ENOMEM;
}

static int run(struct top *t)
{
	const struct options *o = t->recorder.options;
	__u64 every_ns = o->interval_ns ? o->interval_ns : INTERVAL_NS;
	int on = 1, err;

	t->last_ns = now_ns();
	for (__u64 n = 0; on > 0 && (!o->count || n < o->count); n++) {
		on = wait_for_next(t, t->last_ns + every_ns);
		if (on < 0)
			return on;
		/* Also show the counts until the end. */
		err = look(t);
		if (err < 0)
			return err;
		err = on || !t->screen ? show(t) : 0; /* the screen is closed */
		if (!err && on && recorder_must_renew(&t->recorder))
			err = renew(t);
		if (err < 0)
			return err;
	}
	return 0;
}

/* Attaches to the named or selected processes, or to all that the caller has permission to see. */
static int observe(struct recorder *r, const pid_t *pids)
{
	const struct options *o = r->options;
	struct profil_msg_observe m;
	int status = scope_of(&m, o);

	if (o->machine)
		return recorder_machine(r);
	if (!pids && m.scope == PROFIL_SCOPE_PROCESSES)
		m.scope = PROFIL_SCOPE_MACHINE;
	if (m.scope != PROFIL_SCOPE_PROCESSES)
		m.groups = WIDE_GROUPS;
	if (!status)
		status = scope_event(&m, r->profile, o);
	if (!status)
		status = recorder_observe(r, &m, 0);
	for (int i = 0; pids && i < o->argc && !status; i++)
		status = recorder_add(r, pids[i]);
	return status;
}

static int choose(pid_t **pids, const struct options *o)
{
	if (!o->argc)
		return CTL_OK;
	if (!procfs_is_selective(&o->select))
		return named_pids(pids, o);
	log_err("top: processes are named, and selected by an option");
	return CTL_USAGE;
}

static int top(struct top *t, const struct options *o, const pid_t *pids)
{
	int status, err;

	status = o->machine ? recorder_init_connected(&t->recorder, o)
			    : recorder_init(&t->recorder, o);
	if (!status)
		status = observe(&t->recorder, pids);
	if (status)
		return status;
	t->last = profile_borrow(t->recorder.profile);
	if (!t->last)
		return CTL_ERROR;
	/* The machine profile can have counts of days: start from its current counts. */
	if (o->machine && recorder_snapshot(&t->recorder, t->last) < 0)
		return CTL_ERROR;
	if (!o->batch && !o->format && !screen_open(&t->screen)) {
		recorder_input(&t->recorder, STDIN_FILENO);
		t->now = profile_borrow(t->recorder.profile); /* an empty table for the start */
		if (!t->now)
			return CTL_ERROR;
	}
	err = t->screen ? show(t) : 0;
	if (!err)
		err = run(t);
	screen_close(t->screen);
	status = recorder_missing(&t->recorder);
	if (!err)
		return status;
	log_err("top ends: %s", err == -ENODATA	 ? "profild has ended"
				: err == -ENOENT ? "the machine's profile was turned off"
						 : strerror(-err));
	return err == -ENODATA || err == -ENOENT ? CTL_PARTIAL : CTL_ERROR;
}

int verb_top(const struct options *o)
{
	__cleanup(freep) pid_t *pids = NULL;
	struct top t = { .view.stacks = o->stack_mode != 0 };
	int status = choose(&pids, o);

	if (status)
		return status;
	status = top(&t, o, pids);
	profile_give_back(t.last);
	profile_give_back(t.now);
	free(t.function);
	free(t.of.name);
	symbolize_cache_fini(&t.cache);
	recorder_fini(&t.recorder);
	return status;
}
