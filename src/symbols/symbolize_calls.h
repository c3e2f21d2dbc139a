/* symbolize_calls.h - turns the places of stacks into functions */
#ifndef PROFIL_SYMBOLS_SYMBOLIZE_CALLS_H
#define PROFIL_SYMBOLS_SYMBOLIZE_CALLS_H

#include "symbolize_cache.h"

/*
 * Fills in the frames of the call tree of @p, one for each function on a stack. Inlined functions
 * known from debug information get nodes of their own. Returns 0 or -ENOMEM.
 */
int symbolize_calls(struct profile *p, struct symbolize_cache *cache);

#endif
