/* function_reader.h - reads the functions of interpreted languages from a table */
#ifndef PROFIL_TABLE_FUNCTION_READER_H
#define PROFIL_TABLE_FUNCTION_READER_H

#include "profile/interpreted.h"
#include "table.h"

/*
 * Reads all functions of @language in @t into the empty @out. @before: what was read before; NULL:
 * nothing. Returns 0 or -ENOMEM.
 */
int functions_read(struct interpreted *out, const struct table *t, __u32 language,
		   const struct interpreted *before);

#endif
