/* target_use.c - what is attached while a target counts: the lifecycle hooks, and its clock */
#include "target_use.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "lifecycle_hooks.h"
#include "reservation.h"
#include "profild/clock/clock.h"
#include "profild/clock/late_programs.h"

/* A target that waits for the program of its clock. */
struct clock_wait {
	struct late_programs_wait wait;
	struct sampler_bpf *bpf;
	struct target *target;
	void (*done)(void *arg, int err);
	void *arg;
};

static void on_program(struct late_programs_wait *wait, int err)
{
	struct clock_wait *w =
		(struct clock_wait *)((char *)wait - offsetof(struct clock_wait, wait));
	void (*done)(void *arg, int err) = w->done;
	struct target *t = w->target;
	void *arg = w->arg;

	t->clock_wait = NULL;
	err = err ?: reservation_begin(w->bpf->reservations, t, done, arg);
	free(w);
	if (err != -EINPROGRESS)
		done(arg, err);
}

int target_reserve(struct sampler_bpf *b, struct target *t, void (*done)(void *arg, int err),
		   void *arg)
{
	int err = clocks_prepare(b->clocks, t->period_ns, t->flags);

	if (err != -EINPROGRESS)
		return err ?: reservation_begin(b->reservations, t, done, arg);
	t->clock_wait = malloc(sizeof(*t->clock_wait));
	if (!t->clock_wait)
		return -ENOMEM;
	*t->clock_wait = (struct clock_wait){
		.wait.done = on_program, .bpf = b, .target = t, .done = done, .arg = arg
	};
	late_programs_wait(b->programs, &t->clock_wait->wait);
	return -EINPROGRESS;
}

void target_unreserve(struct sampler_bpf *b, struct target *t)
{
	if (t->clock_wait)
		late_programs_wait_end(b->programs, &t->clock_wait->wait);
	free(t->clock_wait);
	t->clock_wait = NULL;
	reservation_cancel(b->reservations, t);
}

int target_use(struct sampler_bpf *b, struct target *t)
{
	int err = lifecycle_hooks_use(b->hooks);

	if (err)
		return err;
	err = clocks_use(b->clocks, t->period_ns, &t->flags);
	if (err)
		lifecycle_hooks_unuse(b->hooks);
	return err;
}

void target_unuse(struct sampler_bpf *b, const struct target *t)
{
	clocks_unuse(b->clocks, t->period_ns, t->flags);
	lifecycle_hooks_unuse(b->hooks);
}
