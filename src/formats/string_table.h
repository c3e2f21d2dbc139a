/* string_table.h - the string table of a pprof profile: each string once */
#ifndef PROFIL_FORMATS_STRING_TABLE_H
#define PROFIL_FORMATS_STRING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <linux/types.h>

/* All zero: it has only string 0, the empty one. */
struct string_table {
	char **string; /* string 1 first */
	size_t n;
	__u32 *slot; /* hash table of string numbers; 0: free */
	size_t room; /* a power of two */
	bool failed; /* out of memory: strings are missing */
};

/* Returns the number of @s, 0 if out of memory. string_table_write() replaces invalid UTF-8. */
__u64 string_table_add(struct string_table *t, const char *s);

/* Writes all strings as field @field of a message. */
void string_table_write(const struct string_table *t, FILE *out, unsigned int field);

void string_table_fini(struct string_table *t);

#endif
