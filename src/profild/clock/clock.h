/* clock.h - the clocks: the timer tick, and one perf event per CPU */
#ifndef PROFIL_PROFILD_CLOCK_CLOCK_H
#define PROFIL_PROFILD_CLOCK_CLOCK_H

#include <stdint.h>
#include <systemd/sd-event.h>

struct clocks;
struct config;
struct late_programs;
struct profil_bpf;
struct store;

/*
 * Attaches nothing yet. Links of an earlier daemon are in @store. Logs why a clock that was named
 * in the options is unavailable.
 */
int clocks_open(struct clocks **out, const struct config *config, struct profil_bpf *skel,
		struct late_programs *programs, struct store *store, sd_event *event);

/* Clocks with targets stay attached if their links are in the store. */
struct clocks *clocks_close(struct clocks *c);

/*
 * Has the program loaded that clocks_use() needs for @period_ns and @flags. Returns 0, a negative
 * errno, or -EINPROGRESS while a thread loads it (late_programs_wait()).
 */
int clocks_prepare(const struct clocks *c, uint64_t period_ns, uint32_t flags);

/*
 * Adds or removes a target that wants a sample for each @period_ns of its CPU time. Chooses its
 * clock and attaches it; *@flags then says which one it is. A clock stays attached for a second
 * after its last target. Returns 0 or a negative errno: -EACCES if no clock is so fast, -EOPNOTSUPP
 * if no clock can do what the flags ask, -EINPROGRESS without clocks_prepare().
 */
int clocks_use(struct clocks *c, uint64_t period_ns, uint32_t *flags);
void clocks_unuse(struct clocks *c, uint64_t period_ns, uint32_t flags);

/* Start a target's CPU-time account: called before and after its insertion into the process table.
 */
struct profil_target;
void clocks_begin(const struct clocks *c, struct profil_target *k);
void clocks_begun(struct clocks *c, const struct profil_target *k);

#endif
