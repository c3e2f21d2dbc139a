/* lines_store.h - the lines of a profile's objects, opened when they are first asked for */
#ifndef PROFIL_SYMBOLS_LINES_STORE_H
#define PROFIL_SYMBOLS_LINES_STORE_H

#include "dwarf_lines.h"

/* Lines that were open in the profile before: those of a file with a build id. */
struct kept_lines {
	struct lines *lines;
	char *path;
	char build_id[PROFILE_BUILD_ID_MAX];
};

/* Only the profile is set in a new one. */
struct lines_store {
	const struct profile *profile;
	struct lines **lines; /* of each object; NULL: not asked for, or none */
	bool *asked;
	size_t n;
	struct kept_lines *kept;
	size_t nkept;
};

/*
 * What the lines of files take in memory at most from one profile to the next. To open them is to
 * unpack the files' debug information.
 */
#define LINES_STORE_BYTES (32ull << 20)

/* Finds the lines of @object, valid until the profile is ended; NULL: none. */
struct lines *lines_store_find(struct lines_store *s, __u32 object);

/*
 * Ends the profile, which must still exist, and keeps the lines of files that were asked for: the
 * next profile, to be set in @s, most likely has the same files.
 */
void lines_store_end(struct lines_store *s);

void lines_store_fini(struct lines_store *s);

#endif
