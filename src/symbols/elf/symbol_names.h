/* symbol_names.h - the functions in the symbol table of an ELF file, as BOLT names them */
#ifndef PROFIL_SYMBOLS_ELF_SYMBOL_NAMES_H
#define PROFIL_SYMBOLS_ELF_SYMBOL_NAMES_H

#include <stddef.h>
#include <linux/types.h>

struct symbol_name {
	__u64 address;
	__u64 bytes;
	char *name; /* of a local function NAME/FILE/N, the Nth with both by address */
};

struct symbol_names {
	struct symbol_name *symbol; /* by address; one for each */
	size_t n;
};

/* Reads those of @fd. Returns 0, -ENODATA without a symbol table, or another negative errno. */
int symbol_names_read(struct symbol_names *names, int fd);

/* The function that holds @address; NULL: none. */
const struct symbol_name *symbol_names_find(const struct symbol_names *names, __u64 address);

void symbol_names_fini(struct symbol_names *names);

#endif
