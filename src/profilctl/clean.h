/* clean.h - strings of unknown origin, made fit for a terminal */
#ifndef PROFIL_CLEAN_H
#define PROFIL_CLEAN_H

#include <stddef.h>

/*
 * What others named may hold anything: nothing of it is for the terminal to obey. Copies what has
 * room, and returns @out.
 */
const char *clean(char *out, size_t bytes, const char *s);

#endif
