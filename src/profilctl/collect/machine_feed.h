/* machine_feed.h - feeds the machine's profile the unwind rows of what runs, for whole stacks */
#ifndef PROFIL_PROFILCTL_COLLECT_MACHINE_FEED_H
#define PROFIL_PROFILCTL_COLLECT_MACHINE_FEED_H

#include "profilctl/options/options.h"

/*
 * Until a signal, or the time limit of @o. Waits for a profile with stacks, and for an ended daemon
 * to restart. Prints a message on failure and returns an enum ctl_status.
 */
int machine_feed(const struct options *o);

#endif
