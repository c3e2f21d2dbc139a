/* keep.c - stores a machine profile for each interval */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"

#include "machine_source.h"
#include "profilctl/collect/self_setup.h"
#include "profilctl/util/exit_status.h"
#include "spool.h"
#include "spool_dir.h"

/*
 * Interval of the search for new images. The file of a process that ended in between is opened by
 * path.
 */
#define UPDATE_MS 1000

/*
 * Times are CLOCK_BOOTTIME, which is never set and continues during suspend. CLOCK_REALTIME only
 * determines the names of files and the ends of intervals, at multiples of their length.
 */
struct keeper {
	const struct options *options;
	struct spool_dir dir;
	struct machine_source source;
	struct self self;
	int signals;
	int timer;
	__u64 interval_ns;
	__u64 end_ns;	/* time limit; 0: none */
	__u64 began_ns; /* start of the current interval */
	__u64 began_real_ns;
	struct merge interval; /* samples of the current interval */
	bool waits;	       /* the latest profiles could not be written */
};

/*
 * The length of an interval that starts at @real_ns and ends at a multiple of @interval_ns: between
 * half an interval and one and a half.
 */
static __u64 interval_length_ns(__u64 interval_ns, __u64 real_ns)
{
	__u64 left_ns = interval_ns - real_ns % interval_ns;

	return left_ns < interval_ns / 2 ? left_ns + interval_ns : left_ns;
}

static int set_timer(const struct keeper *k, __u64 at_ns)
{
	struct itimerspec t = { .it_value = { .tv_sec = (time_t)(at_ns / 1000000000u),
					      .tv_nsec = (long)(at_ns % 1000000000u) } };

	return timerfd_settime(k->timer, TFD_TIMER_ABSTIME, &t, NULL) < 0 ? -errno : 0;
}

static int begin_interval(struct keeper *k)
{
	__u64 until_ns = k->began_ns + interval_length_ns(k->interval_ns, k->began_real_ns);

	if (k->end_ns && k->end_ns < until_ns)
		until_ns = k->end_ns;
	profile_free(k->interval.into);
	k->interval = (struct merge){ .into = profile_new() };
	return k->interval.into ? set_timer(k, until_ns) : -ENOMEM;
}

/* Prints one message when writing begins to fail, and one when it works again. */
static void tell_written(struct keeper *k, int err)
{
	char when[64];

	time_text(when, sizeof(when), k->interval.into->started);
	if (err < 0 && !k->waits)
		log_err("cannot write the profile of %s in %s: %s; profiles wait in memory until "
			"they can be written, the newest %u MiB of them",
			when, k->dir.path,
			err == -ENOSPC	 ? "no space left on device"
			: err == -EDQUOT ? "disk quota exceeded"
					 : strerror(-err),
			SPOOL_WAITING_BYTES >> 20);
	if (!err && k->waits)
		log_notice("profiles are written in %s again, at %s; %llu are missing", k->dir.path,
			   when, k->dir.dropped);
	if (!err)
		k->dir.dropped = 0;
	k->waits = err < 0;
}

/* The next interval begins when the counters are read, before their symbols are. */
static int take_samples(struct keeper *k)
{
	struct profile *p = k->interval.into;
	__u64 now_ns = clock_ns(CLOCK_BOOTTIME), real_ns = clock_ns(CLOCK_REALTIME);
	int err = machine_source_take(&k->source, &k->interval) ?: merge_end(&k->interval);

	p->started = (time_t)((k->began_real_ns + 500000000u) / 1000000000u);
	p->started_boot_ns = k->began_ns;
	p->duration_ns = now_ns - k->began_ns;
	k->began_ns = now_ns;
	k->began_real_ns = real_ns;
	return err;
}

/*
 * Writes the samples of the interval, if there are any, and what waits. Returns 0 or a negative
 * errno: the recording cannot continue.
 */
static int end_interval(struct keeper *k)
{
	struct profile *p = k->interval.into;
	int err = take_samples(k);

	if (err < 0)
		return err;
	if (p->total)
		err = spool_dir_add(&k->dir, p, k->options->format);
	if (err == -ENOMEM)
		return err;
	err = err ?: spool_dir_rotate(&k->dir, time(NULL));
	tell_written(k, spool_dir_flush(&k->dir) ?: err);
	return 0;
}

/*
 * Waits for the end of the interval, or for a table with another rate. Returns 1, 0 at the end of
 * the recording, or a negative errno.
 */
static int wait_interval(struct keeper *k)
{
	struct pollfd p[] = { { .fd = k->signals, .events = POLLIN },
			      { .fd = k->timer, .events = POLLIN },
			      { .events = POLLIN } };
	int n, err = 0;

	do {
		p[2].fd = machine_source_fd(&k->source);
		n = poll(p, 3, UPDATE_MS);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && p[2].revents)
			machine_source_lost(&k->source);
		err = machine_source_update(&k->source, &k->interval);
	} while (!err && (n <= 0 || !(p[0].revents | p[1].revents)));
	return err < 0 ? err : !p[0].revents;
}

/* Writes intervals until a signal or the time limit. */
static int run(struct keeper *k)
{
	int on = 1, err;

	while (on > 0) {
		err = begin_interval(k);
		if (err < 0)
			return err;
		on = wait_interval(k);
		err = on < 0 ? on : end_interval(k);
		if (err < 0)
			return err;
		if (k->end_ns && clock_ns(CLOCK_BOOTTIME) >= k->end_ns)
			on = 0;
	}
	return 0;
}

static int begin(struct keeper *k)
{
	const struct options *o = k->options;

	k->interval_ns = o->interval_ns ? o->interval_ns : SPOOL_INTERVAL_NS;
	k->began_ns = clock_ns(CLOCK_BOOTTIME);
	k->began_real_ns = clock_ns(CLOCK_REALTIME);
	k->end_ns = o->duration_ns ? k->began_ns + o->duration_ns : 0;
	k->dir.max_age_s = o->max_age_s ? o->max_age_s : SPOOL_MAX_AGE_S;
	k->dir.max_bytes = o->max_bytes ? o->max_bytes : SPOOL_MAX_BYTES;
	k->signals = self_prepare(&k->self);
	k->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (k->signals < 0)
		return k->signals;
	return k->timer < 0 ? -errno : 0;
}

static int open_dir(struct keeper *k)
{
	const char *path = k->options->spool ? k->options->spool : SPOOL_DIR_DEFAULT;
	int err = spool_dir_open(&k->dir, path);

	if (!err)
		return CTL_OK;
	log_err("cannot write to the spool %s: %s", path,
		err == -EBUSY ? "another process does" : strerror(-err));
	return err == -EACCES ? CTL_DENIED : CTL_ERROR;
}

int spool_keep(const struct options *o)
{
	struct keeper k = { .options = o, .signals = -1, .timer = -1, .dir.fd = -1 };
	int err = begin(&k), status = CTL_OK;

	if (!err)
		status = open_dir(&k);
	if (!err && !status)
		status = machine_source_open(&k.source, o);
	if (!err && !status) {
		log_notice("keeping a profile of the machine in %s every %.6g s, for %.6g days and "
			   "in %llu MiB at most",
			   k.dir.path, (double)k.interval_ns / 1e9, (double)k.dir.max_age_s / 86400,
			   k.dir.max_bytes >> 20);
		err = run(&k);
	}
	if (k.dir.nwaiting) {
		log_err("%zu files could not be written in %s: their samples are lost",
			k.dir.nwaiting, k.dir.path);
		status = CTL_PARTIAL;
	}
	if (err < 0)
		log_err("cannot continue: %s", strerror(-err));
	profile_free(k.interval.into);
	machine_source_close(&k.source);
	spool_dir_close(&k.dir);
	closep(&k.timer);
	closep(&k.signals);
	return err < 0 ? CTL_ERROR : status;
}
