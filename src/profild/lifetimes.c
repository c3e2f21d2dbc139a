/* lifetimes.c - the programs on fork, exec and exit, attached while there are targets */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "bpf/profil.skel.h"
#include "lifetimes.h"

#define LINGER_US 1000000

struct lifetimes {
	struct profil_bpf *skel;
	sd_event_source *linger;
	unsigned int users;
	bool attached;
};

static void detach(struct lifetimes *l)
{
	if (l->attached)
		profil_bpf__detach(l->skel);
	l->attached = false;
}

static int on_linger(sd_event_source *source, uint64_t usec, void *userdata)
{
	(void)source;
	(void)usec;
	detach(userdata);
	return 0;
}

int lifetimes_open(struct lifetimes **out, struct profil_bpf *skel, sd_event *event)
{
	struct lifetimes *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->skel = skel;
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
	detach(l);
	sd_event_source_unref(l->linger);
	free(l);
	return NULL;
}

int lifetimes_use(struct lifetimes *l)
{
	if (!l->attached) {
		int err = profil_bpf__attach(l->skel);

		if (err)
			return err;
		l->attached = true;
	}
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
