/* startup_rows.h - unwind rows of the start-up code that compilers add to each file, without rules */
#ifndef PROFIL_SYMBOLS_ELF_STARTUP_ROWS_H
#define PROFIL_SYMBOLS_ELF_STARTUP_ROWS_H

#include <stddef.h>

#include "core/unwind_maps.h"

#define STARTUP_ROWS 6

struct startup_rows {
	unsigned int n;
	struct profil_unwind_row row[STARTUP_ROWS];
	__u64 at[STARTUP_ROWS]; /* rising */
};

/*
 * Library constructors and destructors run through code of crti.S and crtstuff.c, and the page
 * faults of a file's first data happen in it. Known are gcc's, for x86-64: _init() or _fini() at
 * @vaddr; and the four functions of crtstuff.c anywhere in @code. No rows: nothing was recognised.
 */
void startup_init_rows(struct startup_rows *out, const unsigned char *code, size_t n, __u64 vaddr);
void startup_crt_rows(struct startup_rows *out, const unsigned char *code, size_t n, __u64 vaddr);

#endif
