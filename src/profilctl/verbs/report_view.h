/* report_view.h - the samples that a report shows: the filters and views of its options */
#ifndef PROFIL_PROFILCTL_VERBS_REPORT_VIEW_H
#define PROFIL_PROFILCTL_VERBS_REPORT_VIEW_H

#include <stdio.h>

#include "profilctl/options/options.h"
#include "profile/profile.h"

/*
 * Refuses, before anything is counted, options that report_view_apply() would refuse for the
 * machine's profile, with or without @stacks. Prints a message and returns CTL_USAGE then.
 */
int report_view_check_machine(const struct options *o, bool stacks);

/*
 * Applies the filters and views of the options to @p, which is symbolized. Prints a message on
 * failure, also if no sample is left, and returns an enum ctl_status.
 */
int report_view_apply(struct profile *p, const struct options *o);

/* Writes, above a text, which part of @total samples the options have left in @p. */
void report_view_describe(FILE *out, const struct options *o, const struct profile *p, __u64 total);

#endif
