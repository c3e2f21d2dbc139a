/* folded_stacks.h - writes the stacks of a profile as folded stacks */
#ifndef PROFIL_FORMATS_FOLDED_STACKS_H
#define PROFIL_FORMATS_FOLDED_STACKS_H

#include <stdio.h>

#include "profile/profile.h"

/*
 * Semicolons separate frames, newlines stacks: a copy of @name without either, in UTF-8. The caller
 * frees it. NULL: out of memory.
 */
char *folded_name(const char *name);

/*
 * Writes a line for all stacks of @p with the same names, in alphabetical order, each beginning
 * with
 * @program. Returns 0 or -ENOMEM.
 */
int folded_stacks(FILE *out, const struct profile *p, const char *program);

#endif
