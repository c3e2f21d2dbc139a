/* annotate.h - prints the source and instructions of a function with sample counts */
#ifndef PROFIL_PROFILCTL_VERBS_ANNOTATE_H
#define PROFIL_PROFILCTL_VERBS_ANNOTATE_H

#include <stdio.h>

#include "profile/profile.h"
#include "profilctl/options/options.h"

/*
 * Writes the lines and instructions of @f, a function of @p, that are available. Names are
 * shortened to lines of @columns; 0: TEXT_COLUMNS. Returns 0 or a negative errno.
 */
int annotate_write(FILE *out, const struct options *o, const struct profile *p,
		   const struct function *f, size_t columns);

#endif
