/* report_tree.h - the calls of a profile as text, instead of its functions */
#ifndef PROFIL_PROFILCTL_VERBS_REPORT_TREE_H
#define PROFIL_PROFILCTL_VERBS_REPORT_TREE_H

#include <stdbool.h>
#include <stdio.h>

#include "profilctl/options/options.h"
#include "profile/profile.h"

/* Says whether the options ask for calls. */
bool report_tree_wanted(const struct options *o);

/*
 * Writes the calls of @p, and closes @out. Prints a message on failure and returns an enum
 * ctl_status.
 */
int report_tree_write(FILE *out, const struct options *o, const struct profile *p);

#endif
