/* demangle.h - names as their languages write them */
#ifndef PROFIL_DEMANGLE_H
#define PROFIL_DEMANGLE_H

#include <stddef.h>

/*
 * Returns the first @n bytes of @name as C++ or Rust would write them, without the hash that
 * Rust adds; as they are where they are no such name. The caller frees it. NULL: for want of
 * memory.
 */
char *demangle(const char *name, size_t n);

#endif
