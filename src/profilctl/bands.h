/* bands.h - when which addresses were hot: the picture of address and time */
#ifndef PROFIL_BANDS_H
#define PROFIL_BANDS_H

#include "profile.h"

/*
 * Gives @p, whose places are known, bands that cover all of them: few enough to be looked at. Their
 * slices are 0. Returns 0 or -ENOMEM.
 */
int bands_init(struct profile *p);

/* Adds the places of @slice, which has the objects of @p, to slice @at. */
void bands_add(struct profile *p, const struct profile *slice, size_t at);

#endif
