/* clock.h - what makes the tick program run: perf events at each rate in use, on each CPU */
#ifndef PROFIL_CLOCK_H
#define PROFIL_CLOCK_H

#include <bpf/libbpf.h>
#include <stdint.h>

struct clocks;
struct store;

/* Runs @tick; at no rate yet. What an earlier daemon has ticking is found in @store. */
int clocks_open(struct clocks **out, const struct bpf_program *tick, struct store *store);

/* Lets go of them here; what is in the store ticks on. */
struct clocks *clocks_close(struct clocks *c);

/*
 * Somebody wants ticks each @period_ns of a CPU's being busy, or no longer does. The events of a
 * rate are there while somebody wants it. Returns 0 or a negative errno.
 */
int clocks_use(struct clocks *c, uint64_t period_ns);
void clocks_unuse(struct clocks *c, uint64_t period_ns);

#endif
