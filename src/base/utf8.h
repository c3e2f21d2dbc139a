/* utf8.h - UTF-8 validation */
#ifndef PROFIL_BASE_UTF8_H
#define PROFIL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes of the character at @s; 0: end of string, or invalid UTF-8. */
size_t utf8_bytes(const char *s);

/*
 * Says whether the character of @n bytes at @s controls a terminal or the order of what it shows:
 * C0, DEL, C1, marks, embeddings and isolates of bidirectional text, and separators of lines.
 */
bool utf8_is_control(const char *s, size_t n);

/* A copy of @s with a blank for each of these, and U+FFFD for each byte that is not UTF-8. */
char *utf8_clean(const char *s);

bool utf8_is_valid(const char *s);

/* A copy with U+FFFD for each invalid byte. NULL: out of memory. */
char *utf8_copy(const char *s);

#endif
