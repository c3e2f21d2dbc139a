/* line_program.h - the rows of a unit's DWARF line program, without those of removed code */
#ifndef PROFIL_SYMBOLS_ELF_LINE_PROGRAM_H
#define PROFIL_SYMBOLS_ELF_LINE_PROGRAM_H

#include <stddef.h>
#include <linux/types.h>

#include "profile/segments.h"

struct line_row {
	__u64 address;
	__u32 file; /* as dwarf_filesrc() numbers files */
	__u32 line;
	__u32 discriminator; /* tells the blocks of one line apart; 0: none */
};

/* Rows for the code in [low, high), by ascending address. */
struct line_sequence {
	__u64 low;
	__u64 high;
	size_t first; /* in rows */
	size_t n;
};

struct line_rows {
	struct line_row *row;
	size_t n;
	struct line_sequence *sequence; /* sorted by address */
	size_t nsequences;
};

/*
 * libdw sorts the rows of all sequences together. A linker that removes a function leaves its
 * sequence, at address 0, and the rows of a large one then lie between those of live code. So this
 * decodes the program itself and keeps the sequences that lie in one section of @code.
 *
 * Executes the program at @offset of the section .debug_line, which has @bytes. Returns 0,
 * -EINVAL for an unknown or damaged program, -EFBIG with more than @most rows, or -ENOMEM.
 * line_rows_fini() in any case.
 */
int line_rows_read(struct line_rows *out, const unsigned char *section, size_t bytes, __u64 offset,
		   const struct segments *code, size_t most);

/* The row for @address; NULL: none. */
const struct line_row *line_rows_find(const struct line_rows *r, __u64 address);

void line_rows_fini(struct line_rows *r);

#endif
