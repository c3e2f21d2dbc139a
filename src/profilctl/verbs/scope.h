/* scope.h - the processes and the event that a command line selects */
#ifndef PROFIL_PROFILCTL_VERBS_SCOPE_H
#define PROFIL_PROFILCTL_VERBS_SCOPE_H

#include "core/proto.h"

#include "profilctl/options/options.h"
#include "profile/profile.h"

/*
 * Fills in @m by --comm, --exe, --cgroup, --unit, --container, --pod or -a of @o, or else for
 * processes that are added one by one. Prints a message on failure and returns an enum ctl_status.
 */
int scope_of(struct profil_msg_observe *m, const struct options *o);

/* Fills in the event of @o, in @m and in @p. Returns likewise. */
int scope_event(struct profil_msg_observe *m, struct profile *p, const struct options *o);

/* The command of a profile with scope @m, for reports; the caller frees it. NULL: out of memory. */
char *scope_name(const struct profil_msg_observe *m, const struct options *o);

#endif
