/* shortcomings.h - what a profile lacks, in words: lost samples, missing names, and the remedies */
#ifndef PROFIL_FORMATS_SHORTCOMINGS_H
#define PROFIL_FORMATS_SHORTCOMINGS_H

#include "profile/profile.h"

/* Calls @say with each sentence, which is valid during the call. */
void shortcomings_each(const struct profile *p, void (*say)(void *ctx, const char *sentence),
		       void *ctx);

#endif
