/* top_calls.h - top's pages of callers and calls */
#ifndef PROFIL_PROFILCTL_TOP_TOP_CALLS_H
#define PROFIL_PROFILCTL_TOP_TOP_CALLS_H

#include <stdio.h>

#include "profile/profile.h"

/*
 * Writes a heading and the callers of @of; if that is NULL, all calls from the start of the
 * threads. Returns 0 or -ENOMEM.
 */
int top_calls_write(FILE *out, const struct profile *p, const struct function *of, size_t columns);

#endif
