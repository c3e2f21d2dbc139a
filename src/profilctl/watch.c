/* watch.c - what is watched, from the daemon that is found to the report that is written */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "core/log.h"
#include "core/scope.h"

#include "grow.h"
#include "now.h"
#include "output.h"
#include "progress.h"
#include "verb.h"
#include "watch.h"

/* So many sessions of processes that have gone are kept: some have children still. */
#define ENDED_MAX 32

/* What woke us: a session's connection or its process, or what concerns all. */
enum source {
	SOURCE_READER,
	SOURCE_PROCESS,
	SOURCE_SIGNAL,
	SOURCE_INPUT,
	SOURCE_NEWCOMERS,
};

static int listen_to(const struct watch *w, int op, int fd, enum source source, size_t session)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = session << 8 | source };

	return epoll_ctl(w->epoll, op, fd, &e) < 0 ? -errno : 0;
}

int watch_init(struct watch *w, const struct options *o)
{
	int status;

	*w = (struct watch){ .options = o, .signals = -1, .epoll = -1 };
	status = output_open(&w->out, o);
	if (status)
		return status;
	w->profile = profile_new();
	w->signals = self_prepare(&w->self);
	if (!w->profile || w->signals < 0) {
		log_err("cannot begin: %s", strerror(w->profile ? -w->signals : ENOMEM));
		return CTL_ERROR;
	}
	if (o->slice_ns && slices_init(&w->slices, o->nslices, o->slice_ns) < 0) {
		log_err("cannot begin: no memory for %zu slices", o->nslices);
		return CTL_ERROR;
	}
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll < 0 || listen_to(w, EPOLL_CTL_ADD, w->signals, SOURCE_SIGNAL, 0) < 0) {
		log_err("cannot begin: %s", strerror(errno));
		return CTL_ERROR;
	}
	return daemon_reach(&w->reader, &w->daemon, o);
}

static int attach_failed(const struct watch *w, pid_t pid, int err)
{
	const struct options *o = w->options;

	switch (err) {
	case -ENODATA:
		log_err("profild has ended");
		return CTL_ERROR;
	case -ESRCH:
		log_err("process %d has gone", (int)pid);
		return CTL_GONE;
	case -EACCES:
	case -EPERM:
		log_err("profild does not let you profile process %d%s; root may", (int)pid,
			o->rate_hz ? " at that rate" : "");
		return CTL_DENIED;
	case -EINVAL:
		if (!o->rate_hz)
			break;
		log_err("profild does not count at %llu Hz; take a lower rate", o->rate_hz);
		return CTL_USAGE;
	case -EAGAIN:
		log_err("profild has no room for another profile now; see 'profilctl list'");
		return CTL_ERROR;
	}
	log_err("cannot profile process %d: %s", (int)pid, strerror(-err));
	return CTL_ERROR;
}

/* What was asked for and what the clock gives may differ; beyond 1 % that is worth a word. */
static void compare_rate(__u64 asked_hz, __u64 tick_ns)
{
	double hz = tick_ns ? 1e9 / (double)tick_ns : 0;

	if (asked_hz && fabs(hz - (double)asked_hz) > 0.01 * (double)asked_hz)
		log_warning("a rate of %llu Hz cannot be met: it is %.6g Hz", asked_hz, hz);
}

/* A connection carries one session: each further one has its own. */
static int connection(struct reader **r, struct watch *w)
{
	if (w->reader) {
		*r = steal(w->reader);
		return 0;
	}
	return daemon_again(r, w->daemon, w->options);
}

/* Of the first one that is watched the profile has its head. */
static void begin(struct watch *w, const struct session *s)
{
	if (!w->profile->command)
		w->profile->command = procfs_command(s->pid);
	w->profile->pid = s->pid;
	w->profile->tick_ns = s->totals.tick_ns;
	w->profile->started = time(NULL);
	compare_rate(w->options->rate_hz, s->totals.tick_ns);
}

static int join(struct watch *w, pid_t pid, __u32 flags)
{
	struct session *more = grow(w->sessions, w->nsessions, sizeof(*more));
	__u64 hz = w->options->rate_hz, period_ns = hz ? (1000000000u + hz / 2) / hz : 0;
	struct reader *r;
	int err;

	if (!more)
		return -ENOMEM;
	w->sessions = more;
	if (w->options->no_inherit)
		flags &= ~(__u32)PROFIL_ATTACH_INHERIT;
	if (w->options->user_only)
		flags |= PROFIL_ATTACH_USER_ONLY;
	err = connection(&r, w);
	if (!err)
		err = session_open(&more[w->nsessions], r, w->profile, pid, period_ns, flags);
	if (err < 0)
		return err;
	err = listen_to(w, EPOLL_CTL_ADD, reader_fd(r), SOURCE_READER, w->nsessions);
	if (!err)
		err = listen_to(w, EPOLL_CTL_ADD, more[w->nsessions].pidfd, SOURCE_PROCESS,
				w->nsessions);
	if (err < 0) {
		session_close(&more[w->nsessions]);
		return err;
	}
	if (!w->profile->tick_ns)
		begin(w, &more[w->nsessions]);
	if (w->options->threads)
		follow_threads(more[w->nsessions].follow);
	w->nsessions++;
	for (size_t i = 0; i < w->nsessions; i++)
		follow_among(more[i].follow, w->nsessions);
	return 0;
}

int watch_attach(struct watch *w, pid_t pid, bool follow_exec)
{
	int err = join(w, pid, PROFIL_ATTACH_INHERIT | (follow_exec ? PROFIL_ATTACH_FOLLOW : 0));

	/* What is named is at work already; a command may be over before it is worth it. */
	if (!err && !follow_exec)
		err = follow_image(w->sessions[w->nsessions - 1].follow);
	return err < 0 ? attach_failed(w, pid, err) : CTL_OK;
}

/* What ends it all, and not a process's part in it: the daemon has gone, or we have no memory. */
static bool is_fatal(int err)
{
	return err == -ENODATA || err == -ENOMEM;
}

/* Takes note of a process for which there was no room. It may be met again and again. */
static int leave_out(struct watch *w, pid_t pid)
{
	pid_t *more;

	for (size_t i = w->nleft_out; i-- > 0;) {
		if (w->left_out[i] == pid)
			return 0;
	}
	more = grow(w->left_out, w->nleft_out, sizeof(*more));
	if (!more)
		return -ENOMEM;
	w->left_out = more;
	more[w->nleft_out++] = pid;
	return 0;
}

/* Attaches to one of many. */
static int take_in(struct watch *w, pid_t pid, __u32 flags)
{
	int err = join(w, pid, flags);

	if (err == -EAGAIN || err == -EMFILE || err == -ENFILE)
		return leave_out(w, pid) ?: err;
	return err;
}

static bool is_watched(const struct watch *w, pid_t pid)
{
	for (size_t i = 0; i < w->nsessions; i++) {
		if (w->sessions[i].pid == pid && !w->sessions[i].ended)
			return true;
	}
	return false;
}

/* Says whether a child that @pid forks is in no session yet, and wanted in one. */
static bool wants_children(const struct watch *w, pid_t pid)
{
	for (size_t i = 0; i < w->nsessions; i++) {
		if (w->sessions[i].pid == pid && !w->sessions[i].inherits)
			return !w->options->no_inherit;
	}
	return false;
}

/*
 * Attaches to a process that has come, if it is meant. What it may have forked before we were there
 * must come in by itself, and nothing twice: it is attached to without its children. One that execs
 * while it is watched is looked at once more when its session has ended. That it has gone since, or
 * is another user's, is no error.
 */
static int welcome(struct watch *w, const struct newcomer *n)
{
	int err;

	if (n->parent && !wants_children(w, n->parent))
		return 0;
	if (is_watched(w, n->pid) || !procfs_matches(n->pid, n->parent, &w->options->select))
		return 0;
	err = take_in(w, n->pid, 0);
	return is_fatal(err) ? err : 0;
}

static int look_for_newcomers(struct watch *w)
{
	__cleanup(freep) struct newcomer *all = NULL;
	size_t n;
	int err = newcomers_take(w->newcomers, &all, &n);

	for (size_t i = 0; i < n && !is_fatal(err); i++)
		err = welcome(w, &all[i]);
	return is_fatal(err) ? err : 0;
}

/* That some have gone since, or are other users', is no error, unless it is all of them. */
static int attach_present(struct watch *w, __u32 flags)
{
	__cleanup(freep) pid_t *pids = NULL;
	size_t n = 0;
	int why = procfs_find(&pids, &n, &w->options->select);
	pid_t who = 0;

	if (why < 0) {
		log_err("cannot look for processes: %s", strerror(-why));
		return CTL_ERROR;
	}
	for (size_t i = 0; i < n && !is_fatal(why); i++) {
		int err = take_in(w, pids[i], flags);

		if (!err || err == -ESRCH)
			continue;
		why = err;
		who = pids[i];
	}
	return is_fatal(why) || (why && !w->nsessions) ? attach_failed(w, who, why) : CTL_OK;
}

int watch_everybody(struct watch *w)
{
	int status = attach_present(w, PROFIL_ATTACH_INHERIT | PROFIL_ATTACH_FOLLOW);

	if (status || w->nsessions)
		return status;
	log_err("there is no process to profile");
	return CTL_GONE;
}

int watch_select(struct watch *w)
{
	int err = newcomers_open(&w->newcomers, &w->options->select), status;

	if (!err)
		err = listen_to(w, EPOLL_CTL_ADD, newcomers_fd(w->newcomers), SOURCE_NEWCOMERS, 0);
	if (err < 0) {
		log_err("cannot look for processes: %s", strerror(-err));
		return CTL_ERROR;
	}
	/* Where all are looked through, children come in by themselves. */
	status = attach_present(w, newcomers_told(w->newcomers) ? PROFIL_ATTACH_INHERIT : 0);
	/* Where nobody is there yet: profild hangs up on who has nothing to say for long. */
	reader_close(steal(w->reader));
	return status;
}

/* Takes in all that a session has found, and closes it. The last one gets its place. */
static int put_away(struct watch *w, size_t i)
{
	struct session *s = &w->sessions[i], *last = &w->sessions[w->nsessions - 1];
	int err = session_detach(s);

	if (!err)
		reader_pump(s->reader);
	if (!err)
		err = follow_events(s->follow);
	if (!err)
		err = follow_settle(s->follow);
	if (err < 0)
		return err;
	w->past.total += s->totals.total;
	w->past.unmatched += s->totals.unmatched + follow_unmatched(s->follow);
	w->past.lost += s->totals.lost;
	session_close(s);
	w->nsessions--;
	w->nended--;
	if (s == last)
		return 0;
	*s = *last;
	/* One that has gone is not listened to any more. */
	listen_to(w, EPOLL_CTL_MOD, s->pidfd, SOURCE_PROCESS, i);
	return listen_to(w, EPOLL_CTL_MOD, reader_fd(s->reader), SOURCE_READER, i);
}

/* A build starts thousands of processes: of those that have gone not all can keep a session. */
static int tidy(struct watch *w)
{
	int err = 0;

	for (size_t i = w->nsessions; i-- > 0 && !err && w->nended > ENDED_MAX;) {
		if (w->sessions[i].ended && follow_alone(w->sessions[i].follow))
			err = put_away(w, i);
	}
	return err;
}

static int show_progress(struct watch *w, __u64 elapsed_ns)
{
	__u64 total = w->past.total;

	for (size_t i = 0; i < w->nsessions; i++) {
		int err = reader_stats(w->sessions[i].reader, &w->sessions[i].totals);

		if (err < 0)
			return err;
		total += w->sessions[i].totals.total;
	}
	progress_show(elapsed_ns, total);
	return 0;
}

/* Until when epoll_wait() may sleep, in its own terms. */
static int timeout_ms(__u64 now, __u64 next_ns)
{
	if (next_ns == ~0ull)
		return -1;
	return next_ns <= now ? 0 : (int)((next_ns - now + 999999) / 1000000);
}

/* Takes in what has come: 1 where it may go on, 0 at the end, or a negative errno. */
static int step(struct watch *w, const struct epoll_event *e)
{
	enum source source = (enum source)(e->data.u64 & 0xff);
	struct session *s;
	bool ended;
	int err;

	if (source == SOURCE_SIGNAL)
		return 0;
	if (source == SOURCE_INPUT)
		return 1;
	if (source == SOURCE_NEWCOMERS)
		return look_for_newcomers(w) ?: 1;
	s = &w->sessions[e->data.u64 >> 8];
	ended = s->ended;
	err = session_step(s, source == SOURCE_READER, source == SOURCE_PROCESS);
	if (err < 0)
		return err;
	/* That it has gone is news only once. */
	if (source == SOURCE_PROCESS)
		epoll_ctl(w->epoll, EPOLL_CTL_DEL, s->pidfd, NULL);
	w->nended += s->ended && !ended;
	if (!w->newcomers)
		return w->nended < w->nsessions;
	if (s->ended && !ended && source == SOURCE_READER)
		return welcome(w, &(struct newcomer){ s->pid, 0 }) ?: 1;
	return 1;
}

int watch_input(struct watch *w, int fd)
{
	return listen_to(w, EPOLL_CTL_ADD, fd, SOURCE_INPUT, 0);
}

int watch_wait(struct watch *w, __u64 until_ns)
{
	struct epoll_event events[64];
	__u64 now = now_ns();
	int on = 1;

	while (on > 0 && now < until_ns) {
		bool input = false;
		int n = epoll_wait(w->epoll, events, 64, timeout_ms(now, until_ns));

		if (n < 0)
			return errno == EINTR ? 1 : -errno; /* the terminal's size, say */
		for (int i = 0; i < n && on > 0; i++) {
			on = step(w, &events[i]);
			input |= (events[i].data.u64 & 0xff) == SOURCE_INPUT;
		}
		if (on > 0 && w->newcomers)
			on = tidy(w) ?: 1;
		if (input)
			break;
		now = now_ns();
	}
	return on;
}

static __u64 sooner(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

/* Watches until the end: see watch_wait() for what is returned. */
static int watch_on(struct watch *w, __u64 began)
{
	const struct options *o = w->options;
	__u64 end_ns = o->duration_ns ? began + o->duration_ns : ~0ull, now = began;
	__u64 progress_ns = progress_wanted() ? began + PROGRESS_EVERY_NS : ~0ull;
	int on = 1;

	while (on > 0 && now < end_ns) {
		__u64 slice_ns = o->slice_ns ? began + slices_next_ns(&w->slices) : ~0ull;

		on = watch_wait(w, sooner(end_ns, sooner(progress_ns, slice_ns)));
		now = now_ns();
		if (on > 0 && now >= slice_ns)
			on = watch_slice(w) ?: 1;
		if (on > 0 && now >= progress_ns) {
			progress_ns = now + PROGRESS_EVERY_NS;
			on = show_progress(w, now - began) ?: 1;
		}
	}
	return on;
}

int watch_run(struct watch *w)
{
	__u64 began = now_ns();
	int on = watch_on(w, began);

	progress_clear();
	w->profile->duration_ns = now_ns() - began;
	w->expired = on > 0;
	w->broken = on < 0;
	if (!w->broken)
		return CTL_OK;
	log_err("lost profild (%s): the report is of what there is up to now",
		on == -ENODATA ? "it has ended" : strerror(-on));
	return CTL_PARTIAL;
}

void watch_fini(struct watch *w)
{
	for (size_t i = 0; i < w->nsessions; i++)
		session_close(&w->sessions[i]);
	free(w->sessions);
	free(w->left_out);
	newcomers_close(w->newcomers);
	reader_close(w->reader);
	daemon_end(w->daemon);
	slices_fini(&w->slices);
	profile_free(w->profile);
	closep(&w->signals);
	closep(&w->epoll);
	if (w->out && w->out != stdout)
		fclose(w->out);
}
