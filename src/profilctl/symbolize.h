/* symbolize.h - from places to functions */
#ifndef PROFIL_SYMBOLIZE_H
#define PROFIL_SYMBOLIZE_H

#include "profile.h"

/*
 * Fills in the functions of @p from its places, sorted: their samples add up to binned. A place
 * that reaches over several functions is shared out among them by the bytes it has of each, and
 * split: afterwards each place lies in one function. Once for each profile.
 * Returns 0 or -ENOMEM.
 */
int symbolize(struct profile *p);

#endif
