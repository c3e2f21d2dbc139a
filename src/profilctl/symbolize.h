/* symbolize.h - from places to functions */
#ifndef PROFIL_SYMBOLIZE_H
#define PROFIL_SYMBOLIZE_H

#include "profile.h"

struct symbols;

/* The symbols of a profile's objects, for who asks for them again and again; all zero at first. */
struct symbolize_cache {
	struct symbols **symbols;
	size_t n;
};

/*
 * Has the names of what just-in-time compilers make looked up anew, for they change all the time.
 * @p has the objects that the cache is of.
 */
void symbolize_cache_renew(struct symbolize_cache *cache, const struct profile *p);

void symbolize_cache_fini(struct symbolize_cache *cache);

/*
 * Fills in the functions of @p from its places, sorted: their samples add up to binned. A place
 * that reaches over several functions is shared out among them by the bytes it has of each, and
 * split: afterwards each place lies in one function. Once for each profile.
 * @cache may be NULL.
 * Returns 0 or -ENOMEM.
 */
int symbolize(struct profile *p, struct symbolize_cache *cache);

#endif
