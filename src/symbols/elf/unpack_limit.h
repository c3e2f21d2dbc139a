/* unpack_limit.h - limits what compressed sections of ELF files may unpack to */
#ifndef PROFIL_SYMBOLS_ELF_UNPACK_LIMIT_H
#define PROFIL_SYMBOLS_ELF_UNPACK_LIMIT_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

/*
 * A stranger's file of some hundred kilobytes can have sections that unpack to gigabytes, which
 * libdw and libdwfl do without a limit. So it is known before they see the file. Debug information
 * of a file that another user can have made may unpack to UNPACK_FILE_BYTES, and is
 * charged to the account of the file's maker while it is open; others to UNPACK_TRUSTED_BYTES.
 */
#define UNPACK_FILE_BYTES (64ull << 20)
#define UNPACK_SYMBOLS_BYTES (16ull << 20) /* .gnu_debugdata, which is unpacked twice */
#define UNPACK_TRUSTED_BYTES (4ull << 30)

/* Says whether a section of @elf is compressed by zstd, and this libelf cannot read that. */
bool unpack_is_unknown(Elf *elf);

/* What the compressed sections with DWARF of @elf unpack to, by their headers. */
__u64 unpack_dwarf_bytes(Elf *elf);

/*
 * Says whether .debug_abbrev of @elf is of a usual size: libdw reads it in one call for each unit,
 * and makes 20 times as much of it.
 */
bool unpack_abbreviations_within(Elf *elf);

/*
 * Says whether the section .gnu_debugdata of @elf unpacks to at most @most bytes, by unpacking it
 * piece by piece; true without the section.
 */
bool unpack_symbols_within(Elf *elf, __u64 most);

#endif
