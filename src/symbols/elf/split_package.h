/* split_package.h - units of a .dwp file, which libdw reads only from 0.191 on */
#ifndef PROFIL_SYMBOLS_ELF_SPLIT_PACKAGE_H
#define PROFIL_SYMBOLS_ELF_SPLIT_PACKAGE_H

#include <elfutils/libdw.h>
#include <stdbool.h>

struct split_package;

/* Opens the .dwp file @fd, which stays the caller's. NULL: it is none, or out of memory. */
struct split_package *split_package_open(int fd);
struct split_package *split_package_close(struct split_package *p);

/*
 * Finds the functions of @skeleton, a unit of @program. They are valid until the package is closed.
 * Returns false if the package lacks them, or they cannot be read.
 */
bool split_package_unit(struct split_package *p, Dwarf *program, Dwarf_Die *skeleton,
			Dwarf_Die *out);

#endif
