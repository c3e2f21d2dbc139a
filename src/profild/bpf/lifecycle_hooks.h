/* lifecycle_hooks.h - the programs on fork, exec and exit, attached while there are targets */
#ifndef PROFIL_PROFILD_BPF_LIFECYCLE_HOOKS_H
#define PROFIL_PROFILD_BPF_LIFECYCLE_HOOKS_H

#include <systemd/sd-event.h>

struct lifecycle_hooks;
struct profil_bpf;
struct store;

/* Finds the links of an earlier daemon in @store. */
int lifecycle_hooks_open(struct lifecycle_hooks **out, struct profil_bpf *skel, struct store *store,
			 sd_event *event);

/* Closes the links here; those in the store stay attached. */
struct lifecycle_hooks *lifecycle_hooks_close(struct lifecycle_hooks *l);

/*
 * Adds or removes a target. After the last one the programs stay attached for a second (linger.h),
 * because attaching to a tracepoint that was just left waits for an RCU grace period.
 */
int lifecycle_hooks_use(struct lifecycle_hooks *l);
void lifecycle_hooks_unuse(struct lifecycle_hooks *l);

#endif
