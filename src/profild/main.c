/* main.c - profild: options, open, loop, close */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "profild/ipc/connection.h"
#include "config.h"
#include "base/log.h"
#include "profild/ipc/server.h"
#include "profild/profile/buffer_writer.h"
#include "daemon.h"
#include "profild/observe/machine.h"
#include "profild/observe/retired_tables.h"
#include "profild/profile/own_profile.h"
#include "profild/profile/sync_timer.h"
#include "profild/profile/sampler.h"
#include "profild/worker/capabilities.h"
#include "profild/worker/disposal.h"
#include "profild/worker/lane.h"

#define LOAD_KEEP_BYTES (32 << 20) /* the most that malloc takes as a threshold */
/* The regions of the largest START: those of the message, of the profile, and of the one that it replaces. */
#define KEEP_BYTES (1 << 19)
#define KEEP_BLOCKS 3

static void on_pc(struct target *t, const struct profil_event *event)
{
	own_profile_pc(t->profile, (pid_t)event->tgid, event->generation, event->pc);
}

static int on_recover(void *arg, struct target *t, const struct profil_owner *owner)
{
	return own_profile_recover(arg, t, owner);
}

static int on_end(sd_event_source *source, const struct signalfd_siginfo *signal, void *userdata)
{
	struct profild *d = userdata;

	d->ending = true; /* last_counts() runs the event loop further */
	return 0;
}

static void on_lost(void *arg, struct user *u, bool late)
{
	own_profiles_lost(arg, u, late);
}

static struct sampler_sink sink = {
	.pc = on_pc,
	.recover = on_recover,
};

/*
 * The main process of the unit needs CAP_DAC_OVERRIDE only for a file of options that its user may
 * not read, and for the processes that it starts, which open the memory of clients: they raise it
 * again. A daemon with pins in bpffs reaches them by paths that may need it.
 */
#define WORKERS_ONLY CAPABILITY(CAP_DAC_OVERRIDE)

static void lower_rights(const struct profild *d)
{
	if (geteuid() && d->config.fd_store)
		capabilities_lower(WORKERS_ONLY);
}

/* Limits apply to what starts: profiles above a lowered limit stay. */
static int on_reload(sd_event_source *source, const struct signalfd_siginfo *signal, void *userdata)
{
	struct profild *d = userdata;

	sd_notify(0, "RELOADING=1");
	capabilities_raise(WORKERS_ONLY);
	if (config_reload(&d->config) < 0)
		log_err("limits unchanged: correct the options and reload again");
	else
		log_notice("limits reloaded");
	lower_rights(d);
	sd_notify(0, "READY=1");
	return 0;
}

/*
 * File descriptors that suffice for all profiles and connections. A lower hard limit, 4096 by
 * default, limits their number.
 */
#define FILES (4 * PROFIL_MAX_TARGETS)

static void raise_limits(void)
{
	struct rlimit files, enough = { FILES, FILES };

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	if (files.rlim_max >= FILES || setrlimit(RLIMIT_NOFILE, &enough) < 0)
		setrlimit(RLIMIT_NOFILE, &files);
}

/*
 * Pins malloc's thresholds: from now on a block of more than @bytes is returned to the system when it is
 * freed, and what is free at the end of the heap beyond some of them. Otherwise the size of a temporary block
 * for a client raises the dynamic mmap threshold, and malloc keeps twice as much for good.
 */
static void heap_keep(int bytes)
{
	mallopt(M_MMAP_THRESHOLD, bytes);
	mallopt(M_TRIM_THRESHOLD, KEEP_BLOCKS * bytes);
}

/* The load reads and frees the kernel's BTF several times: its pages are faulted once. */
static int open_sampler(struct profild *d)
{
	int err;

	heap_keep(LOAD_KEEP_BYTES);
	err = sampler_bpf_open(&d->sampler, &d->config, d->event, &sink);
	heap_keep(KEEP_BYTES);
	malloc_trim(0);
	return err;
}

static gid_t operators(void)
{
	const struct group *group = getgrnam("profil");

	return group ? group->gr_gid : (gid_t)-1;
}

static int profild_open(struct profild *d)
{
	sigset_t signals;
	int err;

	raise_limits();
	heap_keep(KEEP_BYTES);
	d->operators = operators();
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	if (d->config.file)
		sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* write() fails with EFBIG */
	signal(SIGCHLD, SIG_IGN); /* the kernel reaps: wait() takes locks of the process table */
	err = sd_event_default(&d->event);
	if (err >= 0)
		err = sd_event_add_signal(d->event, NULL, SIGTERM, on_end, d);
	if (err >= 0)
		err = sd_event_add_signal(d->event, NULL, SIGINT, on_end, d);
	if (err >= 0 && d->config.file)
		err = sd_event_add_signal(d->event, NULL, SIGHUP, on_reload, d);
	if (err >= 0)
		err = own_profiles_open(d);
	if (err >= 0)
		err = sd_event_now(d->event, CLOCK_MONOTONIC, &d->started_ns);
	if (err < 0) {
		log_err("cannot set up the event loop: %s", strerror(-err));
		return err;
	}
	d->started_ns *= 1000;
	err = quota_new(&d->quota, &d->config.quota)
		      ?: disposal_open(&d->disposal, d->event)
		      ?: retired_tables_open(&d->retired)
		      ?: lanes_open(&d->lanes, d->event, d->config.client_timeout_ns, on_lost, d);
	if (err < 0) {
		log_err("cannot set up quotas and workers: %s", strerror(-err));
		return err;
	}
	sink.arg = d;
	/* Before the store of an earlier daemon is touched: that daemon may still be running. */
	err = server_open(d);
	if (err < 0)
		return err;
	if (d->config.replay_path)
		err = sampler_replay_open(&d->sampler, &d->config, &sink);
	else
		err = open_sampler(d);
	if (err < 0)
		return err;
	retired_tables_list_by(d->retired, d->sampler->table_ids);
	quota_reclaim_by(d->quota, retired_tables_sweep, d->retired);
	d->places = d->config.replay_path ? &replay_places : d->sampler->places;
	d->sampler->ops->recover(d->sampler);
	machine_open(d);
	/* Its first ping starts the service manager's timer: not before the programs are loaded. */
	err = sd_event_set_watchdog(d->event, 1);
	if (err < 0)
		log_err("cannot answer the service manager's watchdog: %s", strerror(-err));
	return err < 0 ? err : 0;
}

/* Time limit for writing the last counts. */
#define LAST_US 1000000

/*
 * Ends all profiles, or with @keep only brings their buffers up to date. Counts that the workers
 * have not written in time are lost.
 */
static void last_counts(struct profild *d, bool keep)
{
	struct own_profile *own, *next;
	uint64_t end, now = 0;

	for (own = d->profiles; own; own = next) {
		next = own->next;
		if (keep)
			writer_pass(own);
		else
			own_profile_finish(own);
	}
	if (sd_event_now(d->event, CLOCK_MONOTONIC, &now) < 0)
		return;
	for (end = now + LAST_US; !own_profiles_served(d) && now < end;
	     sd_event_now(d->event, CLOCK_MONOTONIC, &now)) {
		if (sd_event_run(d->event, end - now) < 0)
			return;
	}
}

static void close_profiles(struct profild *d)
{
	bool keep = d->sampler && d->sampler->ops->keeps(d->sampler);

	if (d->profiles && d->lanes)
		last_counts(d, keep);
	while (d->profiles) {
		if (keep)
			own_profile_forget(d->profiles);
		else
			own_profile_end(d->profiles);
	}
	own_profiles_close(d);
	writers_close(d);
}

static void profild_close(struct profild *d)
{
	server_close(d);
	while (d->clients)
		client_close(d->clients);
	if (d->sampler)
		machine_close(d, d->sampler->ops->keeps(d->sampler));
	close_profiles(d);
	d->lanes = lanes_close(d->lanes);
	d->disposal = disposal_close(d->disposal);
	if (d->sampler)
		d->sampler->ops->close(d->sampler);
	retired_tables_close(d->retired);
	quota_free(d->quota);
	sd_event_unref(d->event);
}

#define FAULTS_MAX 16
#define SLACK_NS 1000000 /* by which the kernel may delay a pass, to join another wake-up */

/* Waits for an event, for @ns at most. Returns false if there is none. */
static bool await_event(int events, uint64_t ns)
{
	struct pollfd fd = { .fd = events, .events = POLLIN };
	struct timespec limit = { (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) };

	return ppoll(&fd, 1, ns == UINT64_MAX ? NULL : &limit, NULL) != 0;
}

/*
 * Passes over the profiles that are due, and one event. Most wake-ups are for passes. They bypass
 * sd_event_wait(), so that they touch fewer cold cache lines after the sleep.
 */
static int one_turn(struct profild *d, int events)
{
	int err = sd_event_prepare(d->event); /* 0: nothing is pending, and its timers are set */
	uint64_t ns;

	sync_arm(d);
	do
		ns = sync_run(d);
	while (!err && !await_event(events, ns));
	err = err ?: sd_event_wait(d->event, 0);
	return err > 0 ? sd_event_dispatch(d->event) : err;
}

/* Tolerates up to FAULTS_MAX errors in a row, because a temporary one (ENOMEM) may not recur. */
static int loop(struct profild *d)
{
	int events = sd_event_get_fd(d->event), faults = 0, err;

	prctl(PR_SET_TIMERSLACK, SLACK_NS);
	while (!d->ending) {
		err = one_turn(d, events);
		faults = err < 0 ? faults + 1 : 0;
		if (err < 0)
			log_err("cannot wait for events: %s%s", strerror(-err),
				faults < FAULTS_MAX ? "; trying again" : "; profiling ends");
		if (faults == FAULTS_MAX)
			return err;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct profild d = { 0 };
	int err;

	log_open("profild");
	err = config_parse(&d.config, argc, argv);
	if (err)
		return err < 0 ? 2 : 0;

	lower_rights(&d); /* before any thread is started */
	err = profild_open(&d);
	if (err >= 0) {
		sd_notify(0, "READY=1");
		err = loop(&d);
		sd_notify(0, "STOPPING=1");
	}
	profild_close(&d);
	return err < 0;
}
