/* unwind_table.h - an ELF file's unwind rules as rows for the kernel's stack walk */
#ifndef PROFIL_SYMBOLS_ELF_UNWIND_TABLE_H
#define PROFIL_SYMBOLS_ELF_UNWIND_TABLE_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/unwind_maps.h"

/* Rows sorted by file offset; neighbours have different rules. */
struct unwind_table {
	struct profil_unwind_row *row;
	size_t n;
	size_t beyond; /* rows whose rule cannot be represented: PROFIL_UNWIND_BEYOND */
};

/*
 * Reads the rules of .eh_frame, and those of .debug_frame for functions that .eh_frame lacks; the
 * latter from @debug, the separate debug file, if @elf has no such section. @debug can be NULL.
 * Omits offsets beyond 4 GiB. Returns 0, without rows if there is neither section, -ENOEXEC if @elf
 * is not an ELF file for this machine, or -ENOMEM.
 */
int unwind_table_read(struct unwind_table *t, Elf *elf, Elf *debug);

/* Says when to stop reading. */
struct unwind_stop {
	bool (*is_due)(void *arg);
	void *arg;
};

/*
 * The same for the ELF file @fd and @debug_fd (-1: none), which stay the caller's. Without rows it
 * returns -EINTR if @stop (NULL: never) was due, as a large file takes seconds, and -EAGAIN if the
 * file's account has no time left in this minute.
 */
int unwind_table_open(struct unwind_table *t, int fd, int debug_fd, const struct unwind_stop *stop);

/* The same for this kernel's vdso, with offsets from its start. */
int unwind_table_open_vdso(struct unwind_table *t);

/*
 * Appends @row; one of the same offset replaces the last, one with the last one's rule is left out,
 * and so is one with a lower offset. Returns 0 or -ENOMEM.
 */
int unwind_table_add(struct unwind_table *t, struct profil_unwind_row row);

/* The row that covers @offset, or NULL. */
const struct profil_unwind_row *unwind_table_find(const struct unwind_table *t, __u32 offset);

void unwind_table_fini(struct unwind_table *t);

#endif
