/* lifetimes.c - the programs on fork, exec and exit, attached while there are targets */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/log.h"
#include "core/scope.h"
#include "lifetimes.h"
#include "skeleton.h"
#include "store.h"

#define LINGER_US 1000000

#define PROGRAMS 5

static const char *const names[PROGRAMS] = { "link-fork", "link-exec", "link-exec-again",
					     "link-exit", "link-free" };

struct lifetimes {
	struct profil_bpf *skel;
	struct store *store;
	sd_event_source *linger;
	unsigned int users;
	int link[PROGRAMS]; /* -1: not attached */
};

static void detach(struct lifetimes *l)
{
	for (int i = 0; i < PROGRAMS; i++) {
		if (l->link[i] < 0)
			continue;
		store_drop(l->store, names[i]);
		close(steal_fd(l->link[i]));
	}
}

/* A link as a plain descriptor: so it goes into the store, and comes out again. */
static int attach_one(struct lifetimes *l, int i, const struct bpf_program *program)
{
	int err;

	l->link[i] = store_take(l->store, names[i]);
	if (l->link[i] >= 0)
		return 0;
	l->link[i] = bpf_raw_tracepoint_open(NULL, bpf_program__fd(program));
	if (l->link[i] < 0)
		return -errno;
	err = store_put(l->store, names[i], l->link[i]);
	if (err)
		log_warning("cannot store %s: %s; profiles end with this daemon", names[i],
			    strerror(-err));
	return 0;
}

static int attach(struct lifetimes *l)
{
	const struct bpf_program *program[PROGRAMS] = { l->skel->progs.sched_wakeup_new,
							l->skel->progs.sched_process_exec,
							l->skel->progs.sched_process_exec_again,
							l->skel->progs.sched_process_exit,
							l->skel->progs.sched_process_free };

	for (int i = 0; i < PROGRAMS; i++) {
		int err = l->link[i] < 0 ? attach_one(l, i, program[i]) : 0;

		if (err) {
			detach(l);
			return err;
		}
	}
	return 0;
}

static int on_linger(sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source;
	(void)usec;
	detach(userdata);
	return 0;
}

int lifetimes_open(struct lifetimes **out, struct profil_bpf *skel, struct store *store,
		   sd_event *event)
{
	struct lifetimes *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->skel = skel;
	l->store = store;
	for (int i = 0; i < PROGRAMS; i++)
		l->link[i] = -1;
	err = sd_event_add_time_relative(event, &l->linger, CLOCK_MONOTONIC, LINGER_US,
					 LINGER_US / 10, on_linger, l);
	if (err >= 0)
		err = sd_event_source_set_enabled(l->linger, SD_EVENT_OFF);
	if (err < 0) {
		lifetimes_close(l);
		return err;
	}
	*out = l;
	return 0;
}

struct lifetimes *lifetimes_close(struct lifetimes *l)
{
	if (!l)
		return NULL;
	for (int i = 0; i < PROGRAMS; i++)
		closep(&l->link[i]);
	sd_event_source_unref(l->linger);
	free(l);
	return NULL;
}

int lifetimes_use(struct lifetimes *l)
{
	int err = attach(l);

	if (err)
		return err;
	sd_event_source_set_enabled(l->linger, SD_EVENT_OFF);
	l->users++;
	return 0;
}

void lifetimes_unuse(struct lifetimes *l)
{
	if (--l->users)
		return;
	sd_event_source_set_time_relative(l->linger, LINGER_US);
	if (sd_event_source_set_enabled(l->linger, SD_EVENT_ONESHOT) < 0)
		detach(l);
}
