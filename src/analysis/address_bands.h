/* address_bands.h - samples by address and time, for the heat map */
#ifndef PROFIL_ANALYSIS_ADDRESS_BANDS_H
#define PROFIL_ANALYSIS_ADDRESS_BANDS_H

#include "profile/profile.h"

/*
 * Makes bands that cover all places of @p, few enough for a picture, with empty slices. Returns 0
 * or -ENOMEM.
 */
int bands_init(struct profile *p);

/* Adds the places of @slice, which has the same objects, to slice @at of the bands. */
void bands_add(struct profile *p, const struct profile *slice, size_t at);

#endif
