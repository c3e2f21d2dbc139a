/* callgrind_calls.h - writes functions and the calls between them for callgrind */
#ifndef PROFIL_FORMATS_CALLGRIND_CALLS_H
#define PROFIL_FORMATS_CALLGRIND_CALLS_H

#include <stdio.h>

#include "profile/profile.h"

/*
 * Writes a line: @key, then @s with blanks for control characters and U+FFFD for what is not UTF-8.
 */
void callgrind_name(FILE *out, const char *key, const char *s);

/* Writes the functions and calls of @p, which has stacks. Returns 0 or -ENOMEM. */
int callgrind_calls(FILE *out, const struct profile *p);

#endif
