/* interpreter.h - the descriptor of an interpreter's binary, for the kernel's walk of its functions
 */
#ifndef PROFIL_SYMBOLS_INTERPRETERS_INTERPRETER_H
#define PROFIL_SYMBOLS_INTERPRETERS_INTERPRETER_H

#include <libelf.h>

#include "core/interpreter_maps.h"

/*
 * Describes the interpreter in the ELF file @elf, whose name is @path. It needs the file's dynamic
 * symbols, no debug information. Returns 0; -ENOENT if it is no interpreter that this program
 * knows; -EOPNOTSUPP if it is one, of a version that this program does not know, or whose symbols
 * are gone.
 */
int interpreter_read(struct profil_interpreter *d, Elf *elf, const char *path);

/* The same for the ELF file @fd, which stays the caller's. -ENOENT also if it is not an ELF file.
 */
int interpreter_open(struct profil_interpreter *d, int fd, const char *path);

#endif
