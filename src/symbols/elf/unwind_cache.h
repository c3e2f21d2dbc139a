/* unwind_cache.h - a cache on disk of unwind tables */
#ifndef PROFIL_SYMBOLS_ELF_UNWIND_CACHE_H
#define PROFIL_SYMBOLS_ELF_UNWIND_CACHE_H

#include "unwind_table.h"

/*
 * The cache is a folder of the user: $XDG_CACHE_HOME/profil or ~/.cache/profil, mode 0700. A table
 * is named by its file's build id and has a checksum; a damaged table counts as missing. Files are
 * created by rename. Beyond UNWIND_CACHE_BYTES in total, the least recently used files are removed.
 */
#define UNWIND_CACHE_BYTES (64u << 20)

/* Opens the folder, and creates it if needed. Returns a descriptor or a negative errno. */
int unwind_cache_open(void);

/*
 * Reads the table of the ELF file @fd, whose build id in hex is @build_id: from the cache @dir,
 * else by unwind_table_open() with the file's separate debug file, and then stores it, unless
 * another user can have made the file. A table that was made without a debug file is not used once
 * there is one. A negative @dir means no cache. Returns as unwind_table_open().
 */
int unwind_cache_table(struct unwind_table *t, int dir, int fd, const char *build_id,
		       const struct unwind_stop *stop);

#endif
