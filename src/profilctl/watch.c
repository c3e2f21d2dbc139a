/* watch.c - one session, from the daemon that is found to the report that is written */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/log.h"
#include "core/scope.h"

#include "output.h"
#include "progress.h"
#include "symbolize.h"
#include "verb.h"
#include "watch.h"

/* A tick that is under way while we detach lands microseconds later. */
#define SETTLE_MS 10

static __u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (__u64)t.tv_sec * 1000000000u + (__u64)t.tv_nsec;
}

int watch_init(struct watch *w, const struct options *o)
{
	int status;

	*w = (struct watch){ .options = o, .pidfd = -1, .maps = -1, .signals = -1 };
	status = output_open(&w->out, o);
	if (status)
		return status;
	w->profile = profile_new();
	w->signals = self_prepare(&w->self);
	if (!w->profile || w->signals < 0) {
		log_err("cannot begin: %s", strerror(w->profile ? -w->signals : ENOMEM));
		return CTL_ERROR;
	}
	return daemon_reach(&w->reader, &w->daemon, o);
}

static int attach_failed(const struct watch *w, pid_t pid, int err)
{
	const struct options *o = w->options;

	switch (err) {
	case -ESRCH:
		log_err("process %d has gone", (int)pid);
		return CTL_GONE;
	case -EACCES:
	case -EPERM:
		log_err("profild does not let you profile process %d%s; root may", (int)pid,
			o->rate_hz ? " at that rate" : "");
		return CTL_DENIED;
	case -EINVAL:
		log_err("profild does not count at %llu Hz; take a lower rate", o->rate_hz);
		return CTL_USAGE;
	case -EAGAIN:
	case -ENOMEM:
		log_err("profild has no room for another profile now; see 'profilctl list'");
		return CTL_ERROR;
	default:
		log_err("cannot profile process %d: %s", (int)pid, strerror(-err));
		return CTL_ERROR;
	}
}

static int open_target(struct watch *w, pid_t pid)
{
	char path[64];

	w->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (w->pidfd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	w->maps = open(path, O_RDONLY | O_CLOEXEC);
	if (w->maps < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return 0;
}

/* What was asked for and what the clock gives may differ; beyond 1 % that is worth a word. */
static void compare_rate(__u64 asked_hz, __u64 tick_ns)
{
	double hz = tick_ns ? 1e9 / (double)tick_ns : 0;

	if (asked_hz && fabs(hz - (double)asked_hz) > 0.01 * (double)asked_hz)
		log_warning("a rate of %llu Hz cannot be met: it is %.6g Hz", asked_hz, hz);
}

static __u32 flags_of(const struct options *o, bool follow_exec)
{
	__u32 flags = 0;

	if (!o->no_inherit)
		flags |= PROFIL_ATTACH_INHERIT;
	if (follow_exec)
		flags |= PROFIL_ATTACH_FOLLOW;
	if (o->user_only)
		flags |= PROFIL_ATTACH_USER_ONLY;
	return flags;
}

int watch_attach(struct watch *w, pid_t pid, bool follow_exec)
{
	const struct options *o = w->options;
	__u64 period_ns = o->rate_hz ? (1000000000u + o->rate_hz / 2) / o->rate_hz : 0;
	struct profil_msg_reply reply = { 0 };
	int err;

	w->follow_exec = follow_exec;
	err = open_target(w, pid);
	if (!err)
		err = reader_attach(w->reader, w->pidfd, w->maps, period_ns,
				    flags_of(o, follow_exec), &reply);
	if (!err)
		err = follow_open(&w->follow, w->reader, w->profile, pid, reply.tgid);
	if (err < 0)
		return attach_failed(w, pid, err);
	w->profile->pid = pid;
	w->profile->tick_ns = reply.tick_ns;
	w->profile->started = time(NULL);
	compare_rate(o->rate_hz, reply.tick_ns);
	return CTL_OK;
}

static int show_progress(struct watch *w, __u64 elapsed_ns)
{
	struct profil_msg_reply reply;
	int err = reader_stats(w->reader, &reply);

	if (!err)
		progress_show(elapsed_ns, reply.total);
	return err;
}

/* The time until something has to be done even if nothing happens; -1: none. */
static int until(__u64 now, __u64 end_ns, __u64 progress_ns)
{
	__u64 next = end_ns;

	if (progress_ns < next)
		next = progress_ns;
	if (next == ~0ull)
		return -1;
	return next <= now ? 0 : (int)((next - now + 999999) / 1000000);
}

/* Takes in what has come and says whether it goes on: 1, 0 at the end, or a negative errno. */
static int step(struct watch *w, int timeout_ms)
{
	struct pollfd p[] = { { .fd = reader_fd(w->reader), .events = POLLIN },
			      { .fd = w->pidfd, .events = POLLIN },
			      { .fd = w->signals, .events = POLLIN } };
	int err;

	if (poll(p, 3, timeout_ms) < 0 && errno != EINTR)
		return -errno;
	err = p[0].revents ? reader_pump(w->reader) : 0;
	if (!err)
		err = follow_events(w->follow);
	if (err < 0)
		return err;
	return !(p[2].revents || p[1].revents || follow_ended(w->follow));
}

int watch_run(struct watch *w)
{
	__u64 began = now_ns(), now = began;
	__u64 end_ns = w->options->duration_ns ? began + w->options->duration_ns : ~0ull;
	__u64 progress_ns = progress_wanted() ? began + PROGRESS_EVERY_NS : ~0ull;
	int on = 1;

	/* What we attach to is at work already; a command may be over before it is worth it. */
	if (!w->follow_exec)
		on = follow_image(w->follow) ?: 1;
	while (on > 0 && now < end_ns) {
		on = step(w, until(now, end_ns, progress_ns));
		now = now_ns();
		if (on > 0 && now >= progress_ns) {
			progress_ns = now + PROGRESS_EVERY_NS;
			on = show_progress(w, now - began) ?: 1;
		}
	}
	progress_clear();
	w->profile->duration_ns = now - began;
	w->expired = on > 0;
	w->broken = on < 0;
	if (!w->broken)
		return CTL_OK;
	log_err("lost profild (%s): the report is of what there is up to now",
		on == -ENODATA ? "it has ended" : strerror(-on));
	return CTL_PARTIAL;
}

/* Ticks that were counted, but have not been seen anywhere. */
static __u64 missing(const struct watch *w, const struct profil_msg_reply *reply)
{
	__u64 seen = w->profile->binned + follow_counted(w->follow) + follow_unmatched(w->follow) +
		     reply->unmatched + reply->lost;

	return reply->total > seen ? reply->total - seen : 0;
}

/* Waits for what is under way, and makes total = binned + unmatched + lost. */
static int tally(struct watch *w, const struct profil_msg_reply *reply)
{
	struct profile *p = w->profile;
	__u64 deadline = now_ns() + SETTLE_MS * 1000000u;
	int err = 0;

	while (!err && missing(w, reply) && now_ns() < deadline) {
		struct pollfd events = { .fd = reader_fd(w->reader), .events = POLLIN };

		/* Mapped counters wake nobody. */
		if (poll(&events, 1, 1) > 0 && reader_pump(w->reader) < 0)
			break;
		err = follow_events(w->follow);
	}
	if (!err)
		err = follow_settle(w->follow);
	if (err < 0)
		return err;
	p->unmatched = follow_unmatched(w->follow) + reply->unmatched;
	p->lost = reply->lost + missing(w, reply);
	p->total = p->binned + p->unmatched + p->lost;
	return 0;
}

/* Without a daemon what we have seen is all there is. */
static int detach(struct watch *w)
{
	struct profil_msg_reply reply = { 0 };
	int err = 0;

	follow_stop(w->follow);
	if (!w->broken)
		err = reader_detach(w->reader, &reply);
	if (err < 0) {
		w->broken = true;
		reply = (struct profil_msg_reply){ 0 };
	}
	err = follow_events(w->follow);
	if (!err)
		err = tally(w, &reply);
	reader_close(steal(w->reader));
	daemon_end(steal(w->daemon));
	self_relax(&w->self);
	return err;
}

int watch_finish(struct watch *w)
{
	struct profile *p = w->profile;
	int err, status;

	err = detach(w);
	if (!err)
		err = symbolize(p);
	if (err < 0) {
		log_err("cannot make a report: %s", strerror(-err));
		return CTL_ERROR;
	}
	status = output_write(steal(w->out), w->options, p);
	if (status)
		return status;
	if (p->lost > p->total / 100)
		log_warning("%llu of %llu samples were lost; take a lower rate", p->lost, p->total);
	return w->broken || p->lost > p->total / 100 ? CTL_PARTIAL : CTL_OK;
}

void watch_fini(struct watch *w)
{
	reader_close(w->reader);
	daemon_end(w->daemon);
	follow_close(w->follow);
	profile_free(w->profile);
	closep(&w->pidfd);
	closep(&w->maps);
	closep(&w->signals);
	if (w->out && w->out != stdout)
		fclose(w->out);
}
