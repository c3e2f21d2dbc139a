/* optimize_check.h - measures a program before and after, in turns */
#ifndef PROFIL_PROFILCTL_VERBS_OPTIMIZE_CHECK_H
#define PROFIL_PROFILCTL_VERBS_OPTIMIZE_CHECK_H

#include "profilctl/options/options.h"

/*
 * Runs o->check with @before and with o->optimized, o->rounds times each, and prints the CPU time
 * of both, and whether they differ. Prints a message on failure and returns an enum ctl_status.
 */
int optimize_check(const struct options *o, const char *before);

#endif
