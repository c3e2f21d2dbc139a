/* names.h - the names of a table's images and groups, and of the functions in them */
#ifndef PROFIL_PROFIL_HTTP_MACHINE_NAMES_H
#define PROFIL_PROFIL_HTTP_MACHINE_NAMES_H

#include "table/table_reader.h"
#include "symbols/symbolize_cache.h"
#include "source.h"

/*
 * The names of one source. Images are opened as they appear, and their symbols are read once. Used
 * by one thread, which can wait for files. Zeroed, it is empty.
 */
struct names {
	struct source *source;
	struct profile *profile; /* objects and groups, no counts */
	struct table_reader reader;
	struct symbolize_cache symbols;
};

/*
 * Updates the names from the table of @source; a new source resets them. Returns 0 or a negative
 * errno.
 */
int names_update(struct names *n, struct source *source);

/* Closes the files that no answer has needed for a minute. Call it after each answer, and later. */
void names_renew(struct names *n);

void names_fini(struct names *n);

#endif
