/* binary.h - symbols, code and words of an interpreter's ELF file */
#ifndef PROFIL_SYMBOLS_INTERPRETERS_BINARY_H
#define PROFIL_SYMBOLS_INTERPRETERS_BINARY_H

#include <gelf.h>
#include <stdbool.h>

#include "core/interpreter_maps.h"

struct binary_symbol {
	__u64 vaddr;
	__u64 bytes;
};

/*
 * Finds the defined symbol @name among the dynamic symbols. .symtab, which can have a million
 * symbols, is not searched: what embeds an interpreter exports its symbols to extension modules.
 */
bool binary_symbol(struct binary_symbol *out, Elf *elf, const char *name);

/* Reads @n bytes at @vaddr of the file into @out. */
bool binary_bytes(Elf *elf, __u64 vaddr, void *out, size_t n);

/* The distance of addresses from file offsets in the segment with code at @vaddr. */
bool binary_delta(Elf *elf, __u64 vaddr, __u64 *delta);

/*
 * Stores as loops, in offsets of the file, the function @loop and the parts that the compiler has
 * moved out of it, "cold" code that only the function itself jumps to: functions by their unwind
 * information that no symbol names, which jumps of the loop enter. Returns false if the loop is in
 * no segment with code, or beyond the first 4 GiB of the file.
 */
bool binary_loops(struct profil_interpreter *d, Elf *elf, const struct binary_symbol *loop);

/*
 * Finds the largest function that @caller calls or ends with a jump to, by the unwind information:
 * one without a symbol. Returns false if it calls none.
 */
bool binary_largest_callee(struct binary_symbol *out, Elf *elf, const struct binary_symbol *caller);

/* Reads the array of @n pointers at @vaddr, as a loader at address 0 fills it in. */
bool binary_pointers(Elf *elf, __u64 vaddr, __u64 *out, size_t n);

/*
 * Stores as operations what room there is for: ranges of code with the @n functions at @start, the
 * largest ones first. The compiler lays out those of a source file side by side, among the helpers
 * of that file.
 */
void binary_add_operations(struct profil_interpreter *d, Elf *elf, const __u64 *start, size_t n);

/*
 * The offset of glibc's blocks of thread-specific data from the thread pointer. glibc tells
 * debuggers; the one that this program runs with stands for those of other root directories.
 */
__s16 binary_specific_offset(void);

/*
 * Stores as the loop the largest range of code without unwind information: V8's builtins, which
 * have no symbols in a stripped file. Returns false if there is none of 256 KiB or more.
 */
bool binary_largest_gap(struct profil_interpreter *d, Elf *elf);

#endif
