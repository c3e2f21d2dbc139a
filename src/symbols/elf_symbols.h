/* elf_symbols.h - finds the function at an offset of an ELF file, or of the kernel */
#ifndef PROFIL_SYMBOLS_ELF_SYMBOLS_H
#define PROFIL_SYMBOLS_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "profile/interpreted.h"

struct symbols;

enum symbols_kind {
	SYMBOLS_NAMED, /* a symbol */
	SYMBOLS_FRAME, /* an unnamed function, known from its unwind information */
	SYMBOLS_PAGE,  /* no known function: a page, cut at neighbouring functions */
};

/* A function, or its substitute, in offsets of the file. */
struct symbols_range {
	enum symbols_kind kind;
	const char *name; /* @name_len bytes, valid until symbols_close() */
	size_t name_len;
	__u64 start;
	__u64 end;  /* of the function */
	__u64 upto; /* offsets from the one asked for up to here have the same answer */
};

/*
 * Reads the symbols of the ELF file @fd, which was found at @path: .symtab, else that of the
 * separate debug file (found by build id or .gnu_debuglink), else the dynamic symbols and Go's
 * pclntab. Keeps no descriptor. -ENOEXEC if it is not an ELF file, -EFBIG if another user's takes more
 * than read_budget.h allows.
 */
int symbols_open(struct symbols **out, int fd, const char *path);

/* Reads the symbols of this kernel's vdso. -ENOENT if there is none. */
int symbols_open_vdso(struct symbols **out);

/* Reads the perf map @fd: symbols of JIT-compiled code, at addresses instead of file offsets. */
int symbols_open_perfmap(struct symbols **out, int fd);

/*
 * Reads the symbols of the running kernel and its modules, with offsets relative to _text, at
 * @text. -EPERM if the kernel hides its addresses.
 */
int symbols_open_kernel(struct symbols **out, __u64 text);

/* The functions @i of an interpreted language, of which it keeps a copy. */
int symbols_open_interpreted(struct symbols **out, const struct interpreted *i);

/* Copies the names at @n sorted @offset from @from, which may hold a mapping of its file. */
int symbols_keep(struct symbols **out, struct symbols *from, const __u64 *offset, size_t n);

void symbols_close(struct symbols *s);

/* Finds the offset of symbol @name, which can be an alias. */
bool symbols_named(const struct symbols *s, const char *name, __u64 *offset);

/* Finds the function at @offset. If @s is NULL, all of it is SYMBOLS_PAGE. */
void symbols_find(struct symbols *s, __u64 offset, struct symbols_range *out);

#endif
