/* target_use.c - what is attached while a target counts: the lifecycle hooks, and its clock */
#include "target_use.h"

#include "lifecycle_hooks.h"
#include "profild/clock/clock.h"

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
