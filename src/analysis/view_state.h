/* view_state.h - the part of a profile of threads' time in some of their states */
#ifndef PROFIL_ANALYSIS_VIEW_STATE_H
#define PROFIL_ANALYSIS_VIEW_STATE_H

#include "profile/profile.h"

/* A bit 1 << CALL_x for each of the states in @text, with commas between them; 0: it is wrong. */
unsigned int view_states(const char *text);

/*
 * Removes from @p, which is symbolized, all time but that in @states, bits as of view_states(). If
 * only running is left, it is a profile of CPU time then, and of off-CPU time if all but that is.
 * Returns 0, -ENOMSG if the profile does not distinguish states, or -ENOMEM.
 */
int view_state(struct profile *p, unsigned int states);

#endif
