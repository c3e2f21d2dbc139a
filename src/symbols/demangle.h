/* demangle.h - demangles C++, Rust and D names */
#ifndef PROFIL_SYMBOLS_DEMANGLE_H
#define PROFIL_SYMBOLS_DEMANGLE_H

#include <stddef.h>

/*
 * Demangles the first @n bytes of @name and removes Rust's hash; a name that is not mangled is
 * copied. The caller frees it. NULL: out of memory.
 */
char *demangle(const char *name, size_t n);

#endif
