/* lifecycle_hooks.c - the programs on fork, exec and exit, attached while there are targets */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/cleanup.h"
#include "lifecycle_hooks.h"
#include "profild/skeleton.h"
#include "profild/store.h"
#include "profild/clock/linger.h"

#define PROGRAMS 5

static const char *const names[PROGRAMS] = { "link-fork", "link-exec", "link-exec-again",
					     "link-exit", "link-free" };

struct lifecycle_hooks {
	struct profil_bpf *skel;
	struct store *store;
	struct linger *linger;
	unsigned int users;
	int link[PROGRAMS]; /* -1: not attached */
};

static void detach(struct lifecycle_hooks *l)
{
	for (int i = 0; i < PROGRAMS; i++) {
		if (l->link[i] < 0)
			continue;
		store_drop(l->store, names[i]);
		close(steal_fd(l->link[i]));
	}
}

/* Uses the raw fd of a link, not struct bpf_link, because the store keeps fds. */
static int attach_one(struct lifecycle_hooks *l, int i, const struct bpf_program *program)
{
	/* The others name their tracepoint themselves. */
	const char *tracepoint =
		program == l->skel->progs.tick_or_exit ? "sched_process_exit" : NULL;
	int err;

	l->link[i] = store_take_link(l->store, names[i]);
	if (l->link[i] >= 0)
		return 0;
	l->link[i] = bpf_raw_tracepoint_open(tracepoint, bpf_program__fd(program));
	if (l->link[i] < 0)
		return -errno;
	err = store_put(l->store, names[i], l->link[i]);
	if (err)
		log_warning("cannot store %s: %s; profiles end with this daemon", names[i],
			    strerror(-err));
	return 0;
}

static int attach(struct lifecycle_hooks *l)
{
	const struct bpf_program *program[PROGRAMS] = { l->skel->progs.sched_wakeup_new,
							l->skel->progs.sched_process_exec,
							l->skel->progs.sched_process_exec_again,
							l->skel->progs.tick_or_exit,
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

static void on_linger(void *arg)
{
	struct lifecycle_hooks *l = arg;

	if (!l->users)
		detach(l);
}

int lifecycle_hooks_open(struct lifecycle_hooks **out, struct profil_bpf *skel, struct store *store,
			 sd_event *event)
{
	struct lifecycle_hooks *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->skel = skel;
	l->store = store;
	for (int i = 0; i < PROGRAMS; i++)
		l->link[i] = -1;
	err = linger_open(&l->linger, event, on_linger, l);
	if (err) {
		lifecycle_hooks_close(l);
		return err;
	}
	*out = l;
	return 0;
}

struct lifecycle_hooks *lifecycle_hooks_close(struct lifecycle_hooks *l)
{
	if (!l)
		return NULL;
	for (int i = 0; i < PROGRAMS; i++)
		closep(&l->link[i]);
	linger_close(l->linger);
	free(l);
	return NULL;
}

int lifecycle_hooks_use(struct lifecycle_hooks *l)
{
	int err = attach(l);

	if (err)
		return err;
	l->users++;
	return 0;
}

void lifecycle_hooks_unuse(struct lifecycle_hooks *l)
{
	if (!--l->users)
		linger_begin(l->linger);
}
