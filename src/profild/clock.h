/* clock.h - what makes the tick programs run, at each rate in use */
#ifndef PROFIL_CLOCK_H
#define PROFIL_CLOCK_H

#include <stdint.h>
#include <systemd/sd-event.h>

struct clocks;
struct config;
struct profil_bpf;
struct store;

/*
 * At no rate yet. What an earlier daemon has ticking is found in @store. Says itself why a clock
 * that was asked for by name is not to be had.
 */
int clocks_open(struct clocks **out, const struct config *config, struct profil_bpf *skel,
		struct store *store, sd_event *event);

/* Lets go of them here; what is in the store ticks on. */
struct clocks *clocks_close(struct clocks *c);

/*
 * A target with *@flags wants a tick each @period_ns of its running, or no longer does: the flags
 * then say which clock it has. A clock is there while somebody wants it, and a moment longer.
 * Returns 0 or a negative errno: -EACCES where no clock is so fast, -EOPNOTSUPP where none can do
 * what the flags ask.
 */
int clocks_use(struct clocks *c, uint64_t period_ns, uint32_t *flags);
void clocks_unuse(struct clocks *c, uint64_t period_ns, uint32_t flags);

/* The clock's part of a target that begins now. */
struct profil_target;
void clocks_begin(const struct clocks *c, struct profil_target *k);

#endif
