/* elf_file.h - an ELF file's build id and code addresses, and the file of an object */
#ifndef PROFIL_SYMBOLS_ELF_ELF_FILE_H
#define PROFIL_SYMBOLS_ELF_ELF_FILE_H

#include <linux/types.h>
#include <stdbool.h>

#include "profile/profile.h"

/*
 * Reads the executable segments of the ELF file @fd, and whether it is a program and not a library.
 * Adds none if it is not an ELF file.
 */
void elf_file_layout(int fd, struct segments *segments, bool *program);

/* Writes the build id of the ELF file @fd in hex, cut to @bytes; "" if it has none. */
void elf_file_build_id(int fd, char *out, size_t bytes);

/*
 * Sets what identifies the file @fd of @o later: its build id, else its size and time of change.
 */
void elf_file_identify(struct object *o, int fd);

/*
 * Opens the file of @o as it was profiled: a duplicate of its descriptor, else the file at its path
 * if it is the same by elf_file_identify(). Returns a descriptor or -ENOENT.
 */
int elf_file_open(const struct object *o);

#endif
