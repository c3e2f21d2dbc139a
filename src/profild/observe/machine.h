/* machine.h - the profile of the whole machine, which belongs to no connection */
#ifndef PROFIL_PROFILD_OBSERVE_MACHINE_H
#define PROFIL_PROFILD_OBSERVE_MACHINE_H

#include "attachment.h"

/*
 * At the daemon's start: continues with the table of an earlier daemon, or creates one if the
 * options say so. If that fails it logs why, and the daemon runs without.
 */
void machine_open(struct profild *d);

/* At the daemon's end. @keeps: the kernel continues to count, for the next daemon. */
void machine_close(struct profild *d, bool keeps);

/*
 * Switches it on, with a sample for each @period_ns and with stacks by @stack_mode, or changes it
 * to that; 0: as it is, or else as the options say.
 */
int machine_on(struct profild *d, uint64_t period_ns, uint32_t stack_mode);
void machine_off(struct profild *d);

/* Makes @c the one that may write the unwind rules. -EBUSY if there is another one. */
int machine_feed(struct profild *d, const struct client *c);

/* The profile that machine_on() has asked for, which may not count yet; NULL: off. */
const struct attachment *machine_newest(const struct profild *d);

#endif
