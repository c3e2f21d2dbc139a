/* edit_distance.h - the number of typing errors between two words */
#ifndef PROFIL_PROFILCTL_UTIL_EDIT_DISTANCE_H
#define PROFIL_PROFILCTL_UTIL_EDIT_DISTANCE_H

#include <stdbool.h>

/*
 * Insertions, deletions, substitutions and transpositions of neighbours that turn @a into @b
 * (optimal string alignment).
 */
unsigned int edit_distance(const char *a, const char *b);

/*
 * Says whether @typed is probably meant as @name: a prefix, or at most one error in three letters.
 */
bool edit_resembles(const char *typed, const char *name);

#endif
