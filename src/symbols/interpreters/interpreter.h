/* interpreter.h - the descriptor of an interpreter's binary, for the kernel's walk of its functions
 */
#ifndef PROFIL_SYMBOLS_INTERPRETERS_INTERPRETER_H
#define PROFIL_SYMBOLS_INTERPRETERS_INTERPRETER_H

#include <libelf.h>
#include <stdbool.h>

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

/* Says whether two descriptors are the same: they say the same of each word and byte. */
bool interpreter_is_same(const struct profil_interpreter *a, const struct profil_interpreter *b);

/*
 * Of one language, as interpreter_read(): CPython 3.8 to 3.14; Node 18 to 24, by the constants that
 * V8 has for debuggers; PHP 8.0 to 8.3 without thread safety and Perl 5.36 to 5.42 with threads, as
 * Debian builds them; Ruby 3.1 and 3.3 as a library; JDK 17, 21 and 25 on x86-64.
 */
int cpython_read(struct profil_interpreter *d, Elf *elf, const char *path);
int v8_read(struct profil_interpreter *d, Elf *elf);
int php_read(struct profil_interpreter *d, Elf *elf);
int ruby_read(struct profil_interpreter *d, Elf *elf);
int perl_read(struct profil_interpreter *d, Elf *elf);
int hotspot_read(struct profil_interpreter *d, Elf *elf);

#endif
