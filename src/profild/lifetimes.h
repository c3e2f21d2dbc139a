/* lifetimes.h - the programs on fork, exec and exit, attached while there are targets */
#ifndef PROFIL_LIFETIMES_H
#define PROFIL_LIFETIMES_H

#include <systemd/sd-event.h>

struct lifetimes;
struct profil_bpf;
struct store;

/* What an earlier daemon has attached is found in @store. */
int lifetimes_open(struct lifetimes **out, struct profil_bpf *skel, struct store *store,
		   sd_event *event);

/* Lets go of them here; what is in the store stays attached. */
struct lifetimes *lifetimes_close(struct lifetimes *l);

/*
 * There is one target more, or one less. After the last the programs stay for a moment: to attach
 * to a tracepoint that was just left waits for a grace period.
 */
int lifetimes_use(struct lifetimes *l);
void lifetimes_unuse(struct lifetimes *l);

#endif
