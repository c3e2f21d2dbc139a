/* elf_file.h - an ELF file's build id and code addresses, and the file of an object */
#ifndef PROFIL_SYMBOLS_ELF_ELF_FILE_H
#define PROFIL_SYMBOLS_ELF_ELF_FILE_H

#include <gelf.h>
#include <stdbool.h>

#include "profile/profile.h"

/* The first section of @type; NULL: none. */
Elf_Scn *elf_file_section(Elf *elf, GElf_Word type);

/*
 * Finds the difference between virtual addresses and file offsets of the code in ELF file @fd, and
 * whether it is a program and not a library.
 */
void elf_file_layout(int fd, __u64 *vaddr, bool *program);

/* Writes the build id of the ELF file @fd in hex, cut to @bytes; "" if it has none. */
void elf_file_build_id(int fd, char *out, size_t bytes);

/*
 * Opens the file of @o as it was profiled: a duplicate of its descriptor, else the file at its path
 * if the build id matches. Returns a descriptor or -ENOENT.
 */
int elf_file_open(const struct object *o);

#endif
