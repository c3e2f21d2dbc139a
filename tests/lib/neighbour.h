/* neighbour.h - a well-behaved client, which hostile ones must not disturb */
#ifndef PROFIL_TEST_NEIGHBOUR_H
#define PROFIL_TEST_NEIGHBOUR_H

#include "daemon.h"

/*
 * Starts a process of another user, which is profiled by @d and works. The stop lets it work until
 * it has been counted again: its profile must go on, and its total must add up.
 */
void neighbour_start(const struct daemon *d);
void neighbour_stop(const struct daemon *d);

#endif
