/* go_pclntab.h - function names from Go's pclntab, which stripped programs keep */
#ifndef PROFIL_SYMBOLS_ELF_GO_PCLNTAB_H
#define PROFIL_SYMBOLS_ELF_GO_PCLNTAB_H

#include <libelf.h>
#include <stddef.h>
#include <linux/types.h>

struct go_function {
	__u64 start; /* virtual addresses */
	__u64 end;
	const char *name; /* in the table */
};

struct go_functions {
	struct go_function *function; /* sorted by start */
	size_t n;
};

/*
 * Reads the table of @elf, which must outlive @out; without a table @out is empty. Returns 0 or
 * -ENOMEM. go_functions_fini() in any case.
 */
int go_functions_read(struct go_functions *out, Elf *elf);

/*
 * Reads the @bytes of the table at @table. Function addresses are relative to @text, unless the
 * table has its own start. Of a damaged table the readable functions are used. Returns 0, -EINVAL
 * if it is not a table of a known version, or -ENOMEM.
 */
int go_pclntab_parse(struct go_functions *out, const unsigned char *table, size_t bytes,
		     __u64 text);

void go_functions_fini(struct go_functions *f);

#endif
