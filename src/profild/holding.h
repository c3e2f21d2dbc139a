/* holding.h - what targets hold of the maps: an index, regions, counters */
#ifndef PROFIL_HOLDING_H
#define PROFIL_HOLDING_H

#include <systemd/sd-event.h>

#include "chunks.h"
#include "target.h"

struct holdings;
struct maps;
struct store;

/*
 * What is given back is free again only after a grace period: a tick under way may still be in it.
 * @settled is called then, before anything is.
 */
int holdings_open(struct holdings **out, struct maps *maps, struct store *store, sd_event *event,
		  void (*settled)(void *arg), void *arg);
struct holdings *holdings_close(struct holdings *h);

/* Finds room for @t, whose index and firsts it sets. -EAGAIN or -ENOMEM where there is none. */
int holdings_take(struct holdings *h, struct target *t);

/* The same, just where @t was with an earlier daemon. */
int holdings_take_at(struct holdings *h, const struct target *t);

/*
 * Also for a target of an earlier daemon that no session has taken over. @quiet: it has been closed
 * and no tick is under way, so that its counters, a process's, are free at once.
 */
void holdings_give(struct holdings *h, const struct target *t, bool quiet);

/* Where the counters lie. */
struct chunks *holdings_chunks(const struct holdings *h);

#endif
