/* spots.h - where ticks fell, with what is known of each place */
#ifndef PROFIL_SPOTS_H
#define PROFIL_SPOTS_H

#include "profile.h"

struct lines;

struct spot {
	struct place place;
	const struct function *function; /* NULL: of no function that is known */
	const char *file;		 /* of source; NULL: not known */
	int line;
	const char *inlined; /* the function that was put into that one here; NULL: none */
};

/* In order of object and offset: their counts add up to binned. */
struct spots {
	struct spot *spot;
	size_t n;
	struct lines **lines; /* in which the names of files lie */
	size_t nlines;
};

/*
 * Finds the function of each place of @p, which must outlive it, and with @with_lines the line of
 * source, and what was inlined there. Returns 0 or -ENOMEM. spots_fini() in any case.
 */
int spots_init(struct spots *s, const struct profile *p, bool with_lines);

void spots_fini(struct spots *s);

#endif
