/* symbolize_cache.h - the symbols of a profile's objects */
#ifndef PROFIL_SYMBOLS_SYMBOLIZE_CACHE_H
#define PROFIL_SYMBOLS_SYMBOLIZE_CACHE_H

#include <linux/types.h>

#include "profile/profile.h"

struct lines;
struct symbols;

struct symbolize_cache_entry {
	struct symbols *symbols; /* NULL: not read, or the object has none */
	struct symbols *kept;	 /* of a file that was let go; used if it cannot be opened again */
	struct lines *lines;	 /* NULL: not read, or the object has none */
	__u64 used_ns;		 /* CLOCK_MONOTONIC */
	bool tried;		 /* to read the symbols, since the cache was renewed */
	bool lines_tried;
	bool interpreter_unknown; /* the file has an interpreter of a version that is not known */
};

/* Symbols that were read already, by object. All zero: empty, without limit. */
struct symbolize_cache {
	struct symbolize_cache_entry *objects;
	size_t n;
	/*
	 * So many objects have symbols at most: those used least recently are dropped, and are read
	 * again when needed, READS_MOST times as many in all until the cache is renewed. What is
	 * beyond that has no names.
	 */
	size_t most;
	size_t held;
	size_t reads;
	bool without_lines; /* what is asked for has no inlined functions: to find them takes long */
	/* Opens the file of an object that was released; NULL: only its path is tried. */
	void (*reopen)(void *reader, __u32 object);
	void *reader;
};

/*
 * What the lines that stay open when the cache is renewed take in memory at most. To open them is
 * to unpack the file's debug information, which was most of the spool's CPU time when it was done
 * for each interval.
 */
#define SYMBOLIZE_CACHE_LINES_BYTES (32ull << 20)

/*
 * Drops the symbols of JIT-compiled code, which change all the time, and those that have not been
 * used since @since_ns, and closes the files of the latter: they would fill the memory of a machine
 * that replaces programs all day, and keep its file systems busy after the programs have ended.
 * Objects without symbols will be tried again. @p has the cache's objects.
 */
void symbolize_cache_renew(struct symbolize_cache *cache, struct profile *p, __u64 since_ns);

/*
 * Closes the file of @object, of which no process has a mapping any more, and keeps the names of
 * the functions at @n sorted @offset. Returns 0 or -ENOMEM.
 */
int symbolize_cache_let_go(struct symbolize_cache *cache, struct profile *p, __u32 object,
			   const __u64 *offset, size_t n);

#define SYMBOLIZE_CACHE_READS_MOST 8

/* A minute ago: what was not used since can be read again when it is needed. */
__u64 symbolize_cache_minute_ago(void);

void symbolize_cache_fini(struct symbolize_cache *cache);

/* Finds the symbols of object @object of @p, NULL if it has none. Returns 0 or -ENOMEM. */
int symbolize_cached(struct symbols **out, const struct profile *p, __u32 object,
		     struct symbolize_cache *cache);

/* Why functions of @object may lack names, though it has symbols: as in struct object. */
const char *symbolize_cached_unnamed(__u32 object, const struct symbolize_cache *cache);

/* Finds the lines of object @object of @p, valid until the cache is renewed; NULL: none. */
struct lines *symbolize_cached_lines(const struct profile *p, __u32 object,
				     struct symbolize_cache *cache);

#endif
