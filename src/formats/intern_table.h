/* intern_table.h - byte strings, each once, by number: strings, and the messages of OTLP's tables
 */
#ifndef PROFIL_FORMATS_INTERN_TABLE_H
#define PROFIL_FORMATS_INTERN_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <linux/types.h>

#include "base/index_slots.h"

struct interned {
	char *bytes; /* followed by a NUL */
	size_t n;
};

/* All zero: it has only entry 0, the empty one. */
struct intern_table {
	struct interned *entry; /* entry 1 first */
	size_t n;
	struct index_slots slots; /* by number */
	bool failed;		  /* out of memory: entries are missing */
};

/* Returns the number of the @n bytes, 0 if out of memory. */
__u32 intern_bytes(struct intern_table *t, const void *bytes, size_t n);
__u32 intern_string(struct intern_table *t, const char *s);

/*
 * Replaces control characters and invalid UTF-8 in all entries, which are strings. Nothing can be
 * added any more.
 */
void intern_clean(struct intern_table *t);

/* Entry @number, which intern_string() has returned. */
const char *intern_text(const struct intern_table *t, __u32 number);

/* Writes all entries as field @field of a message. */
void intern_write(const struct intern_table *t, FILE *out, unsigned int field);

void intern_fini(struct intern_table *t);

#endif
