/* utf8.h - UTF-8 validation */
#ifndef PROFIL_BASE_UTF8_H
#define PROFIL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes of the character at @s; 0: end of string, or invalid UTF-8. */
size_t utf8_bytes(const char *s);

bool utf8_is_valid(const char *s);

/* A copy with U+FFFD for each invalid byte. NULL: out of memory. */
char *utf8_copy(const char *s);

#endif
