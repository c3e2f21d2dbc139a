/* symbolize.h - turns the places of a profile into functions */
#ifndef PROFIL_SYMBOLS_SYMBOLIZE_H
#define PROFIL_SYMBOLS_SYMBOLIZE_H

#include "symbolize_cache.h"

/*
 * Fills in the functions of @p, sorted; their samples add up to binned. A place that covers several
 * functions is split among them by bytes, so that each place lies in one function afterwards. Fills
 * in the frames of stacks, too. Call once for each profile. @cache can be NULL. Returns 0 or
 * -ENOMEM.
 */
int symbolize(struct profile *p, struct symbolize_cache *cache);

#endif
