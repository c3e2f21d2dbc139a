/* dwarf_lines.h - source lines and inlined functions by offset in an object, mostly from DWARF */
#ifndef PROFIL_SYMBOLS_DWARF_LINES_H
#define PROFIL_SYMBOLS_DWARF_LINES_H

#include <stdbool.h>

#include "profile/profile.h"

struct lines;

/*
 * Reads the line numbers of @o, from the file, its separate debug file or the jitdump. Returns 0,
 * -ENOENT if there are none or the file no longer exists, or another negative errno.
 */
int lines_open(struct lines **out, const struct object *o);

void lines_close(struct lines *l);

/*
 * What @l takes in memory, roughly. It grows by the units that are looked into. 0: the file is
 * another user's, and may be read for a limited time until lines_close().
 */
__u64 lines_bytes(const struct lines *l);

/*
 * Finds the source line at @offset; *@file is valid until lines_close(). False if unknown, and if
 * @l is NULL.
 */
bool lines_find(struct lines *l, __u64 offset, const char **file, int *line);

/*
 * The innermost function that is inlined at @offset, valid until lines_close(). NULL: none. Equal
 * names are the same pointer, in whichever compilation units.
 */
const char *lines_inlined(struct lines *l, __u64 offset);

/* The same for up to @max inlined functions, innermost first. Returns their number. */
size_t lines_inlines(struct lines *l, __u64 offset, const char **name, size_t max);

/*
 * A place in a function as compilers name it in their profiles, where a change elsewhere in the
 * file does not move it.
 */
struct source_site {
	const char *function; /* its linkage name */
	__u32 line;	      /* from the function's first one */
	__u32 discriminator;  /* as in the debug information */
};

/*
 * Finds the function at @offset and those inlined there, innermost first; each but the first is at
 * its call of the one before. *@entry is the offset of the last, which is not inlined. Returns
 * their number; 0: unknown, or more than @max. Valid until lines_close().
 */
size_t lines_sites(struct lines *l, __u64 offset, struct source_site *site, size_t max,
		   __u64 *entry);

#endif
