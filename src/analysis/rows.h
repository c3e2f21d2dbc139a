/* rows.h - rows of a report: samples by name */
#ifndef PROFIL_ANALYSIS_ROWS_H
#define PROFIL_ANALYSIS_ROWS_H

#include <stddef.h>
#include <linux/types.h>

struct row {
	char *name;
	/* The part of @name that is a function's name and can be shortened. */
	size_t function_at;
	size_t function_len;
	__u64 samples;
	__u32 object;
	__u64 offset; /* of the function, which tells two of one name apart; 0: none */
};

/* Most samples first; they add up to binned. */
struct rows {
	struct row *row;
	size_t n;
};

#endif
