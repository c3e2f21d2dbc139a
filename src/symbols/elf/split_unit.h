/* split_unit.h - the part of a DWARF unit that the compiler has put into a .dwo or .dwp file */
#ifndef PROFIL_SYMBOLS_ELF_SPLIT_UNIT_H
#define PROFIL_SYMBOLS_ELF_SPLIT_UNIT_H

#include <elfutils/libdw.h>
#include <stdbool.h>

#include "debug_file.h"
#include "split_package.h"

/*
 * Finds the functions of @skeleton, a unit of @program, the DWARF of @f, which was made with
 * -gsplit-dwarf. Opens *@package where the unit can be in one; it is the caller's to close. Returns
 * false if @skeleton is an ordinary unit; also if the file cannot be found or must not be read,
 * which is logged.
 */
bool split_unit(struct split_package **package, const struct debug_file *f, Dwarf *program,
		Dwarf_Die *skeleton, Dwarf_Die *out);

#endif
