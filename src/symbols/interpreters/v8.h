/* v8.h - the descriptor of binaries with V8: node and libnode */
#ifndef PROFIL_SYMBOLS_INTERPRETERS_V8_H
#define PROFIL_SYMBOLS_INTERPRETERS_V8_H

#include <libelf.h>

#include "core/interpreter_maps.h"

/* As interpreter_read(). The versions of Node 18 to 24, by the constants that V8 has for debuggers.
 */
int v8_read(struct profil_interpreter *d, Elf *elf);

#endif
