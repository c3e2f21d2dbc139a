/* cpython.h - the descriptor of CPython's binaries: python3.x and libpython */
#ifndef PROFIL_SYMBOLS_INTERPRETERS_CPYTHON_H
#define PROFIL_SYMBOLS_INTERPRETERS_CPYTHON_H

#include <libelf.h>

#include "core/interpreter_maps.h"

/* As interpreter_read(). CPython 3.8 to 3.14. */
int cpython_read(struct profil_interpreter *d, Elf *elf, const char *path);

#endif
