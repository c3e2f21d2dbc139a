/* elf_image.h - sections by name or type, and executable segments, of an ELF file */
#ifndef PROFIL_SYMBOLS_ELF_ELF_IMAGE_H
#define PROFIL_SYMBOLS_ELF_ELF_IMAGE_H

#include <gelf.h>

#include "profile/segments.h"

/* The first section with that name or type, and its header in *@sh. NULL: none. */
Elf_Scn *elf_image_section(Elf *elf, const char *name, GElf_Shdr *sh);
Elf_Scn *elf_image_section_of_type(Elf *elf, GElf_Word type, GElf_Shdr *sh);

/* The bytes of the section @name as they are in the file. NULL: none, or they are not there. */
Elf_Data *elf_image_bytes(Elf *elf, const char *name, GElf_Shdr *sh);

/* Reads the executable segments of @elf, that of .text first. Returns 0, -ENOEXEC or -ENOMEM. */
int elf_image_segments(struct segments *out, Elf *elf);

/*
 * Adds the sections with code of @elf, minus @bias; without section headers, its executable
 * segments. Nothing outside of them is code: a segment can hold the ELF header at address 0, where
 * linkers put the debug information of what they have removed. Returns 0, -ENOEXEC or -ENOMEM.
 */
int elf_image_code(struct segments *out, Elf *elf, __u64 bias);

/* The bytes from @vaddr to the end of its segment, executable or not. NULL: not in the file. */
Elf_Data *elf_image_bytes_at(Elf *elf, __u64 vaddr);

#endif
