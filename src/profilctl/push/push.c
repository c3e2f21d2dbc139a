/* push.c - sends the profiles of a spool to a receiver of OTLP */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/gzip.h"
#include "base/log.h"
#include "base/sanitize.h"
#include "formats/format.h"
#include "otlp_http.h"
#include "profilctl/collect/self_setup.h"
#include "profilctl/input/load.h"
#include "profilctl/util/exit_status.h"
#include "profilctl/util/time_words.h"
#include "push.h"
#include "sent_log.h"
#include "symbols/lines_store.h"

/*
 * The spool is the queue: what waits is in it, and what it removes before it was sent is lost. A
 * profile is noted as sent after the receiver has taken it, so a crash in between sends it twice,
 * with the same profile_id.
 */
#define WAIT_MIN_S 1
#define WAIT_MAX_S 60 /* between two tries, unless the receiver asks for more */
#define ASKED_MAX_S 3600
#define DAILY_BYTES (200ull << 20)
#define SCAN_S 60 /* between two looks at a spool that inotify says nothing about */

struct push {
	const struct options *options;
	const char *spool;
	struct otlp_http *http;
	struct sent_log sent;
	struct self self;
	int signals;
	int changes;		     /* inotify */
	__u64 end_ns;		     /* time limit; 0: none */
	struct spool_entry *waiting; /* not sent, the oldest first */
	size_t nwaiting;
	const char *now; /* the name of the one that is being sent */
	__u64 scans;
	__u64 failures; /* tries without success since the last one with */
	__u64 taken;	/* profiles */
	__u64 samples;	/* in these */
	__u64 dropped;
	__u64 daily_bytes;
	double spare_bytes; /* of these, which former profiles have not used */
	__u64 folded;	    /* profiles with light stacks in their callers */
	struct lines_store lines;
};

static __attribute__((format(printf, 3, 4))) void drop(struct push *p, const char *name,
						       const char *why, ...)
{
	char reason[1024], clean[1024];
	va_list args;

	va_start(args, why);
	vsnprintf(reason, sizeof(reason), why, args);
	va_end(args);
	p->dropped++;
	log_warning("%s is dropped: %s", name, sanitize(clean, sizeof(clean), reason));
}

/* Counts what waited and is not in the spool any more. */
static void count_removed(struct push *p, const struct spool_entry *all, size_t n)
{
	__u64 removed = 0;

	for (size_t i = 0; i < p->nwaiting; i++)
		removed += !spool_files_has(all, n, p->waiting[i].name) &&
			   !sent_log_has(&p->sent, p->waiting[i].name) &&
			   strcmp(p->waiting[i].name, p->now) != 0;
	if (!removed)
		return;
	p->dropped += removed;
	log_warning(
		"%llu profiles were removed from %s before they were sent: its limits of age or "
		"size are too small for this outage",
		removed, p->spool);
}

/* After a restart: if the last one sent has been removed, so may have been others behind it. */
static void tell_gap(const struct push *p, const struct spool_entry *all, size_t n)
{
	if (p->scans || !*p->sent.last || !n || spool_files_has(all, n, p->sent.last) ||
	    strcmp(p->sent.last, all[0].name) >= 0)
		return;
	log_warning(
		"profiles between %s, the last one sent, and %s, the oldest one in %s, may have "
		"been removed before they were sent",
		p->sent.last, all[0].name, p->spool);
}

/* Lists the profiles that are not sent. Returns 0 or a negative errno. */
static int scan(struct push *p)
{
	__cleanup(freep) struct spool_entry *all = NULL;
	size_t n, out = 0;
	int err = spool_files_list(&all, &n, p->spool, false);

	if (err < 0)
		return err;
	count_removed(p, all, n);
	tell_gap(p, all, n);
	p->scans++;
	err = sent_log_compact(&p->sent, all, n);
	for (size_t i = 0; i < n; i++) {
		if (all[i].is_profile && !sent_log_has(&p->sent, all[i].name))
			all[out++] = all[i];
	}
	free(p->waiting);
	p->waiting = steal(all);
	p->nwaiting = out;
	return err;
}

/* Waits for a change in the spool, or @seconds. Returns 1, or 0 to end. */
static int wait_for(struct push *p, __u64 seconds, bool changes)
{
	struct pollfd fds[] = { { .fd = p->signals, .events = POLLIN },
				{ .fd = changes ? p->changes : -1, .events = POLLIN } };
	__u64 now = now_ns(), until = now + seconds * 1000000000u;
	char events[4096];

	if (p->end_ns && p->end_ns < until)
		until = p->end_ns;
	if (until > now)
		poll(fds, 2, (int)((until - now) / 1000000) + 1);
	if (fds[1].revents && read(p->changes, events, sizeof(events)) < 0 && errno != EAGAIN)
		return 0;
	return !fds[0].revents && !(p->end_ns && now_ns() >= p->end_ns);
}

/* Prints one message when sending begins to fail, and one when it works again. */
static void tell_sending(struct push *p, bool works, const char *why)
{
	char clean[1024];

	if (!works && !p->failures++)
		log_warning("cannot send to %s: %s; %zu profile%s in %s until it works",
			    otlp_http_url(p->http), sanitize(clean, sizeof(clean), why),
			    p->nwaiting, p->nwaiting == 1 ? " waits" : "s wait", p->spool);
	if (!works || !p->failures)
		return;
	log_notice("profiles are sent to %s again", otlp_http_url(p->http));
	p->failures = 0;
}

/* Doubles the pause with each failure, or does what the receiver asks for. */
static __u64 pause_s(const struct push *p, const struct otlp_answer *a)
{
	unsigned int shift = p->failures < 8 ? (unsigned int)p->failures : 8;
	__u64 s = (__u64)WAIT_MIN_S << (shift ? shift - 1 : 0);

	if (a->wait_s)
		return a->wait_s < ASKED_MAX_S ? a->wait_s : ASKED_MAX_S;
	return s < WAIT_MAX_S ? s : WAIT_MAX_S;
}

/* Sends until it is taken or refused. Returns 1, 0 to end, or a negative errno. */
static int send_bytes(struct push *p, const char *name, const char *bytes, size_t n, __u64 samples)
{
	struct otlp_answer a;
	int err;

	for (;;) {
		enum otlp_outcome outcome = otlp_http_send(p->http, bytes, n, &a);

		if (outcome == OTLP_INTERRUPTED)
			return 0;
		tell_sending(p, outcome != OTLP_LATER, a.why);
		if (outcome == OTLP_REFUSED)
			drop(p, name, "%s refuses it: %s", otlp_http_url(p->http), a.why);
		if (outcome == OTLP_TAKEN && a.rejected)
			drop(p, name, "%s has rejected %llu profiles in it: %s",
			     otlp_http_url(p->http), a.rejected, a.why);
		if (outcome == OTLP_TAKEN && !a.rejected) {
			p->taken++;
			p->samples += samples;
		}
		if (outcome != OTLP_LATER)
			return sent_log_add(&p->sent, name) ?: 1;
		if (!wait_for(p, pause_s(p, &a), false))
			return 0;
		err = scan(p);
		if (err < 0)
			return err;
	}
}

static int encode(char **bytes, size_t *n, struct lines_store *lines)
{
	FILE *f = open_memstream(bytes, n);
	int err = f ? otlp_write_lines(f, lines) : -ENOMEM;

	if (f && fclose(f) && !err)
		err = -ENOMEM;
	return err;
}

static int packed_bytes(__u64 *out, const char *bytes, size_t n)
{
	__cleanup(freep) char *packed = NULL;
	size_t packed_n;
	FILE *f = open_memstream(&packed, &packed_n);
	int err = f ? gzip_write(f, bytes, n) : -ENOMEM;

	if (f && fclose(f) && !err)
		err = -ENOMEM;
	*out = err ? 0 : packed_n;
	return err;
}

/*
 * Folds light stacks into their callers, more of them each time, until the rest may be encoded
 * within @most bytes: as many nodes fewer as @packed has bytes too many.
 */
static int fold_to(struct profile *p, __u64 packed, double most)
{
	double nodes = (double)p->calls.n;
	int err;

	do {
		p->least = p->least ? 2 * p->least : 2;
		err = call_tree_fold_light(&p->calls, p->least);
	} while (!err && p->least <= p->total &&
		 (double)packed * (double)p->calls.n > most * nodes);
	return err;
}

/*
 * Encodes @profile in no more than the daily bytes leave for it: its time's part, and what the
 * profiles before it have not used, up to that of an hour. Without stacks, or with outermost frames
 * only, it is what it is.
 */
static int encode_within(char **bytes, size_t *n, struct push *p, struct profile *profile)
{
	double part = (double)p->daily_bytes * (double)profile->duration_ns / (86400 * 1e9);
	double most = p->spare_bytes + part, hour = (double)p->daily_bytes / 24;
	__u64 packed;
	int err = encode(bytes, n, &p->lines) ?: packed_bytes(&packed, *bytes, *n);

	while (!err && (double)packed > most && profile->calls.n &&
	       profile->least <= profile->total) {
		free(steal(*bytes));
		err = fold_to(profile, packed, most)
			      ?: encode(bytes, n, &p->lines)
			      ?: packed_bytes(&packed, *bytes, *n);
	}
	if (err)
		return err;
	p->spare_bytes = (double)packed < most ? most - (double)packed : 0;
	if (p->spare_bytes > hour)
		p->spare_bytes = hour;
	return 0;
}

/* Says once that light stacks are counted in their callers. */
static void tell_folded(struct push *p, const struct profile *profile)
{
	if (!profile->least || p->folded++)
		return;
	log_notice("stacks of less than %llu samples are counted in their callers, here and where "
		   "it takes that to send no more than %llu MiB a day (--max-daily)",
		   profile->least, p->daily_bytes >> 20);
}

/* Returns 1, 0 to end, or a negative errno. */
static int send_profile(struct push *p, const char *name, struct profile *profile)
{
	__cleanup(freep) char *bytes = NULL;
	size_t n;
	int err;

	p->lines.profile = profile;
	err = encode_within(&bytes, &n, p, profile);
	lines_store_end(&p->lines);
	if (err)
		return err;
	tell_folded(p, profile);
	return send_bytes(p, name, bytes, n, profile->total);
}

/* Returns 1, 0 to end, or a negative errno. */
static int send_file(struct push *p, const char *name)
{
	__cleanup(profile_freep) struct profile *profile = NULL;
	__cleanup(freep) char *path = NULL;

	if (asprintf(&path, "%s/%s", p->spool, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (access(path, F_OK) < 0 && errno == ENOENT)
		return 1; /* count_removed() counts it */
	if (load_profile(&profile, path)) {
		drop(p, name, "it cannot be read");
		return sent_log_add(&p->sent, name) ?: 1;
	}
	return profile->total ? send_profile(p, name, profile)
			      : (sent_log_add(&p->sent, name) ?: 1);
}

/* Sends those of the last scan. A try that failed scans again. Returns as send_file(). */
static int send_waiting(struct push *p)
{
	__u64 scans = p->scans;
	int on = 1;

	for (size_t i = 0; i < p->nwaiting && on > 0 && scans == p->scans; i++) {
		char name[sizeof(p->waiting->name)];

		memcpy(name, p->waiting[i].name, sizeof(name));
		p->now = name;
		on = send_file(p, name);
		p->now = "";
	}
	return on;
}

static int run(struct push *p)
{
	int on = 1;

	while (on > 0) {
		int err = scan(p);

		if (err < 0)
			return err;
		if (p->options->once && !p->nwaiting)
			return 0;
		on = p->nwaiting ? send_waiting(p) : wait_for(p, SCAN_S, true);
	}
	return on;
}

static int open_state(struct push *p)
{
	const char *path = p->options->state ? p->options->state : PUSH_STATE_DEFAULT;
	int err = sent_log_open(&p->sent, path);

	if (!err)
		return CTL_OK;
	log_err("machine push: %s: %s%s", path,
		err == -EBUSY ? "another process sends profiles" : strerror(-err),
		p->options->state ? "" : " (--state names another file)");
	return err == -EACCES ? CTL_DENIED : CTL_ERROR;
}

static int begin(struct push *p, const char *endpoint)
{
	int status;

	p->signals = self_prepare(&p->self);
	p->changes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (p->signals < 0 || p->changes < 0) {
		log_err("machine push: %s", strerror(errno));
		return CTL_ERROR;
	}
	if (inotify_add_watch(p->changes, p->spool, IN_MOVED_TO | IN_CREATE | IN_DELETE) < 0) {
		log_err("machine push: cannot read the spool %s: %s", p->spool, strerror(errno));
		return errno == EACCES ? CTL_DENIED : CTL_ERROR;
	}
	status = otlp_http_open(&p->http, endpoint, p->options->header, p->options->nheaders,
				p->signals);
	return status ? status : open_state(p);
}

int push_spool(const struct options *o, const char *endpoint)
{
	struct push p = { .options = o,
			  .spool = o->spool ? o->spool : SPOOL_DIR_DEFAULT,
			  .signals = -1,
			  .changes = -1,
			  .sent.fd = -1,
			  .now = "",
			  .daily_bytes = o->daily_bytes ? o->daily_bytes : DAILY_BYTES,
			  .end_ns = o->duration_ns ? now_ns() + o->duration_ns : 0 };
	int status = begin(&p, endpoint), err = 0;

	if (!status) {
		log_notice("sending the profiles in %s to %s", p.spool, otlp_http_url(p.http));
		err = run(&p);
		log_notice("sent %llu profiles of %llu samples, %llu dropped", p.taken, p.samples,
			   p.dropped);
	}
	if (err < 0)
		log_err("cannot continue: %s", strerror(-err));
	lines_store_fini(&p.lines);
	free(p.waiting);
	sent_log_close(&p.sent);
	otlp_http_close(p.http);
	closep(&p.changes);
	closep(&p.signals);
	return err < 0 ? CTL_ERROR : status ? status : p.dropped ? CTL_PARTIAL : CTL_OK;
}
