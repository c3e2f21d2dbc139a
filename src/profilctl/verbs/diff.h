/* diff.h - prints the changes between two profiles */
#ifndef PROFIL_PROFILCTL_VERBS_DIFF_H
#define PROFIL_PROFILCTL_VERBS_DIFF_H

#include <stdio.h>

#include "profilctl/options/options.h"
#include "profile/profile.h"

/*
 * Checks that the format of @o exists for two profiles. Prints a message if not and returns an enum
 * ctl_status.
 */
int diff_check(const struct options *o);

/*
 * Writes the changes in the format of @o. Both profiles are symbolized. Returns 0 or a negative
 * errno.
 */
int diff_write(FILE *out, const struct options *o, const struct profile *a,
	       const struct profile *b);

#endif
