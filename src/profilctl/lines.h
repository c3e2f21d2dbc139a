/* lines.h - which line of source stands at an offset of an ELF file */
#ifndef PROFIL_LINES_H
#define PROFIL_LINES_H

#include <stdbool.h>

#include "profile.h"

struct lines;

/*
 * Reads the line numbers of @o: its own, or those that were split off it. -ENOENT where there are
 * none, or where the file has gone.
 */
int lines_open(struct lines **out, const struct object *o);

void lines_close(struct lines *l);

/* What stands at @offset; @file lives as long as @l does. @l may be NULL: then nothing is known. */
bool lines_find(struct lines *l, __u64 offset, const char **file, int *line);

/*
 * The function that the compiler has put into another one there, the innermost; it lives as long as
 * @l does. NULL: none.
 */
const char *lines_inlined(struct lines *l, __u64 offset);

#endif
