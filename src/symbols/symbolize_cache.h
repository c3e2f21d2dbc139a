/* symbolize_cache.h - the symbols of a profile's objects */
#ifndef PROFIL_SYMBOLS_SYMBOLIZE_CACHE_H
#define PROFIL_SYMBOLS_SYMBOLIZE_CACHE_H

#include <linux/types.h>

#include "profile/profile.h"

struct symbols;

struct symbolize_cache_entry {
	struct symbols *symbols; /* NULL: not read, or the object has none */
	__u64 used_ns;		 /* CLOCK_MONOTONIC */
	bool tried;		 /* to read the symbols, since the cache was renewed */
};

/* Symbols that were read already, by object. All zero: empty. */
struct symbolize_cache {
	struct symbolize_cache_entry *objects;
	size_t n;
};

/*
 * Drops the symbols of JIT-compiled code, which change all the time, and those that have not been
 * used for a minute: on a machine that replaces programs all day they would fill the memory.
 * Objects without symbols will be tried again. @p has the cache's objects.
 */
void symbolize_cache_renew(struct symbolize_cache *cache, const struct profile *p);

void symbolize_cache_fini(struct symbolize_cache *cache);

/* Finds the symbols of object @object of @p, NULL if it has none. Returns 0 or -ENOMEM. */
int symbolize_cached(struct symbols **out, const struct profile *p, __u32 object,
		     struct symbolize_cache *cache);

#endif
