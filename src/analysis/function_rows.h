/* function_rows.h - the functions of a profile as a table shows them: a row for each of the source
 */
#ifndef PROFIL_ANALYSIS_FUNCTION_ROWS_H
#define PROFIL_ANALYSIS_FUNCTION_ROWS_H

#include "profile/profile.h"

struct function_row {
	const struct function *function; /* the instance with the most samples */
	__u64 samples;
};

struct function_rows {
	struct function_row *row; /* sorted, most samples first */
	size_t n;
	size_t *of; /* of each function of the profile: its row */
};

/*
 * A compiler at run time makes a function again when it knows more of it: all code of that name in
 * the memory of a process is one row. In a file, two functions of one name are two of the source.
 * Returns 0 or -ENOMEM; function_rows_fini() in any case.
 */
int function_rows_init(struct function_rows *rows, const struct profile *p);
void function_rows_fini(struct function_rows *rows);

#endif
