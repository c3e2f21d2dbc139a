/* debug_file.h - the symbols and DWARF of an ELF file, or of its separate debug file */
#ifndef PROFIL_SYMBOLS_ELF_DEBUG_FILE_H
#define PROFIL_SYMBOLS_ELF_DEBUG_FILE_H

#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdbool.h>
#include <linux/types.h>

struct debug_file;

/*
 * Opens the ELF file @fd, which was found at @path and stays the caller's. The first request for
 * symbols or DWARF searches for a separate debug file as gdb does: by build id, by .gnu_debuglink,
 * or on the servers in DEBUGINFOD_URLS. A file with a wrong build id or checksum is not used.
 * Returns 0, -ENOEXEC or -ENOMEM.
 */
int debug_file_open(struct debug_file **out, int fd, const char *path);
struct debug_file *debug_file_close(struct debug_file *f);

/*
 * The number of symbols: of .symtab, else of the debug file's .symtab, else the dynamic ones and
 * those of .gnu_debugdata. Not positive: none, or too many in a file of another user.
 */
int debug_file_nsymbols(struct debug_file *f);

/*
 * Returns the name of symbol @i, whose table is in *@elf. *@address is its value as a virtual
 * address of the opened file, which can differ from the debug file's (prelink).
 */
const char *debug_file_symbol(struct debug_file *f, int i, GElf_Sym *sym, GElf_Addr *address,
			      Elf **elf);

/*
 * Says that the debug information takes more than unpack_limit.h and read_budget.h allow: there is
 * no DWARF.
 */
bool debug_file_is_packed(const struct debug_file *f);

/* What its compressed debug information takes in memory while it is open. */
__u64 debug_file_unpacked_bytes(const struct debug_file *f);

/* The DWARF is read, as far as read_budget.h allows, between resume and pause. */
void debug_file_resume(struct debug_file *f);
void debug_file_pause(struct debug_file *f);
bool debug_file_is_within(struct debug_file *f);

/* So are symbols, between begin and pause. Once this has returned false they must be given up. */
void debug_file_begin_symbols(struct debug_file *f);
bool debug_file_has_symbols_within(struct debug_file *f);

/* The file with the DWARF, and its folder; NULL: unknown. */
const char *debug_file_path_of(const struct debug_file *f);
const char *debug_file_folder(const struct debug_file *f);

/* Says whether root or this user made the files: libdw may open the files that they name. */
bool debug_file_is_trusted(const struct debug_file *f);

/*
 * The DWARF, including dwz(1)'s supplementary files; NULL: none. @bias has to be added to its
 * addresses.
 */
Dwarf *debug_file_dwarf(struct debug_file *f, Dwarf_Addr *bias);

#endif
