/* view_chains.h - shows what woke up threads in the stacks on which they slept */
#ifndef PROFIL_ANALYSIS_VIEW_CHAINS_H
#define PROFIL_ANALYSIS_VIEW_CHAINS_H

#include "profile/profile.h"

/*
 * Moves the samples of sleeps whose waker is known from the innermost frame of the sleeper's stack
 * to a chain: that stack, a frame "[woken by]", and the waker's stack from its innermost frame
 * outwards, so that the functions that have to do with each other are neighbours. @p is symbolized.
 * Returns 0 or -ENOMEM.
 */
int view_chains(struct profile *p);

#endif
