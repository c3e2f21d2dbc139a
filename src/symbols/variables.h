/* variables.h - names the variables of objects: those that threads wait at, locks */
#ifndef PROFIL_SYMBOLS_VARIABLES_H
#define PROFIL_SYMBOLS_VARIABLES_H

#include "profile/profile.h"

struct variable {
	__u64 offset; /* in the object, with what lies behind a file's bytes: .bss */
	char *name;   /* set by variables_name(): the symbol, and the distance from its start */
};

/*
 * Names @n variables of @o, with one pass over its symbols. Those that no symbol contains keep the
 * name NULL, and all of them if the symbols cannot be read. The caller frees the names. Returns 0
 * or -ENOMEM.
 */
int variables_name(struct variable *v, size_t n, const struct object *o);

#endif
