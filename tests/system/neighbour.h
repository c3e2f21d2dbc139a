/* neighbour.h - a well-behaved client beside the others: who should not notice them */
#ifndef PROFIL_TEST_NEIGHBOUR_H
#define PROFIL_TEST_NEIGHBOUR_H

#include "daemon.h"

/*
 * A process of a user of its own is profiled by @d and works from now on; at the end, after a
 * second of CPU time at least, it must have all its ticks, and its profile must add up.
 */
void neighbour_start(const struct daemon *d);
void neighbour_stop(const struct daemon *d);

#endif
