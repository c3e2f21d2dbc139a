/* push.h - sends the profiles of a spool to a receiver of OTLP */
#ifndef PROFIL_PROFILCTL_PUSH_PUSH_H
#define PROFIL_PROFILCTL_PUSH_PUSH_H

#include "profilctl/options/options.h"

#define PUSH_STATE_DEFAULT "/var/lib/profil-push/sent"

/*
 * Sends the profiles of the spool of @o to @endpoint, or to what the environment names if that is
 * NULL: the oldest first, each until it is taken or refused, then new ones as they come. Ends at a
 * signal, at the time limit of @o, or with o->once when all are sent. Prints a message on failure
 * and returns an enum ctl_status: CTL_PARTIAL if profiles were dropped.
 */
int push_spool(const struct options *o, const char *endpoint);

#endif
