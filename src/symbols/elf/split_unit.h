/* split_unit.h - the part of a DWARF unit that the compiler has put into a .dwo or .dwp file */
#ifndef PROFIL_SYMBOLS_ELF_SPLIT_UNIT_H
#define PROFIL_SYMBOLS_ELF_SPLIT_UNIT_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "debug_file.h"

/*
 * Finds the functions of @skeleton, a unit of @f made with -gsplit-dwarf. Returns false if
 * @skeleton is an ordinary unit; also if the file cannot be found or must not be read, which is
 * logged.
 */
bool split_unit(const struct debug_file *f, Dwarf_Die *skeleton, Dwarf_Die *out);

#endif
