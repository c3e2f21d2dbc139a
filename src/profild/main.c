/* main.c - profild: options, open, loop, close */
#include <errno.h>
#include <grp.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>

#include "client.h"
#include "config.h"
#include "core/log.h"
#include "listen.h"
#include "mirror.h"
#include "policy.h"
#include "profild.h"
#include "session.h"

#define KEEP_BYTES 32768 /* of the heap, at most, for the next who wants some */

static void on_event(struct target *t, const struct profil_event *event)
{
	struct session *s = t->session;

	if (s->reader)
		client_event(s->reader, event);
	else if (event->kind == PROFIL_EVENT_RAW)
		session_pc(s, (pid_t)event->tgid, event->life, event->pc);
}

static int on_recover(void *arg, struct target *t, const struct profil_owner *owner)
{
	return session_recover(arg, t, owner);
}

static void on_idle(void *arg)
{
	const struct profild *d = arg;

	for (struct client *c = d->clients; c; c = c->next)
		client_flush(c, false);
}

static struct sampler_sink sink = {
	.counts = mirror_counts,
	.event = on_event,
	.redo = mirror_redo,
	.recover = on_recover,
	.idle = on_idle,
};

/* Profiles that are over a lower limit stay: limits are for what starts. */
static int on_reload(sd_event_source *source, const struct signalfd_siginfo *signal, void *userdata)
{
	struct profild *d = userdata;

	(void)source;
	(void)signal;
	sd_notify(0, "RELOADING=1");
	if (config_reload(&d->config) < 0)
		log_err("the limits stay as they were: correct what is wrong and reload again");
	else
		log_notice("limits read again");
	sd_notify(0, "READY=1");
	return 0;
}

/*
 * A profile holds two descriptors, a reader's connection one: let there be enough. What may not be
 * had beyond the hard limit, which is 4096 where nobody has raised it, limits the profiles.
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
 * What a client made us take for a moment goes back to the system when it is freed. Else malloc()
 * would learn from the largest, and keep twice as much for ever.
 */
static void keep_no_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, KEEP_BYTES);
	mallopt(M_TRIM_THRESHOLD, KEEP_BYTES);
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
	keep_no_memory();
	d->operators = operators();
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	if (d->config.file)
		sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);

	err = sd_event_default(&d->event);
	if (err >= 0)
		err = sd_event_add_signal(d->event, NULL, SIGTERM, NULL, NULL);
	if (err >= 0)
		err = sd_event_add_signal(d->event, NULL, SIGINT, NULL, NULL);
	if (err >= 0 && d->config.file)
		err = sd_event_add_signal(d->event, NULL, SIGHUP, on_reload, d);
	if (err >= 0)
		err = sd_event_set_watchdog(d->event, 1);
	if (err >= 0)
		err = sd_event_now(d->event, CLOCK_MONOTONIC, &d->started_ns);
	if (err < 0) {
		log_err("cannot set up the event loop: %s", strerror(-err));
		return err;
	}
	d->started_ns *= 1000;
	sink.arg = d;
	/* Before what an earlier daemon left is touched: it may be there still, and answer. */
	err = listen_open(d);
	if (err < 0)
		return err;
	if (d->config.replay_path)
		err = sampler_replay_open(&d->sampler, &d->config, &sink);
	else
		err = sampler_bpf_open(&d->sampler, &d->config, d->event, &sink);
	if (err < 0)
		return err;
	d->sampler->ops->recover(d->sampler);
	return 0;
}

static void profild_close(struct profild *d)
{
	listen_close(d);
	while (d->clients)
		client_close(d->clients);
	while (d->sessions) {
		if (d->sampler->ops->keeps(d->sampler)) {
			mirror_session(d->sessions);
			session_forget(d->sessions);
		} else {
			session_end(d->sessions);
		}
	}
	if (d->sampler)
		d->sampler->ops->close(d->sampler);
	policy_close(d);
	sd_event_unref(d->event);
}

#define FAULTS_MAX 16
#define SLACK_NS 1000000 /* which a pass of the mirror may wait for another interrupt */

/* Waits until there is an event, for @ns at most: says whether there is. */
static bool await_event(int events, uint64_t ns)
{
	struct pollfd fd = { .fd = events, .events = POLLIN };
	struct timespec limit = { (time_t)(ns / NSEC_PER_SEC), (long)(ns % NSEC_PER_SEC) };

	return ppoll(&fd, 1, ns == UINT64_MAX ? NULL : &limit, NULL) != 0;
}

/*
 * What fails in one round, as where there is no memory for a moment, need not fail in the next. The
 * mirror's passes, which are most of what wakes the daemon, go past sd-event: after a sleep no page
 * is in a cache, and each that is not touched is a saving.
 */
static int loop(struct profild *d)
{
	int events = sd_event_get_fd(d->event), faults = 0, err = 1;
	uint64_t ns;

	prctl(PR_SET_TIMERSLACK, SLACK_NS);
	while (sd_event_get_state(d->event) != SD_EVENT_FINISHED) {
		mirror_arm(d);
		do
			ns = mirror_run(d);
		while (!err && !await_event(events, ns));
		err = sd_event_run(d->event,
				   0); /* 0: it has nothing to do, and its timers are set */
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

	err = profild_open(&d);
	if (err >= 0) {
		sd_notify(0, "READY=1");
		err = loop(&d);
		sd_notify(0, "STOPPING=1");
	}
	profild_close(&d);
	return err < 0;
}
