/* demangle.c - demangles C++ and Rust names */
#include <libiberty/demangle.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cleanup.h"

#include "demangle.h"

/* Longer names are not demangled: a mangled name of megabytes is an attack. */
#define MANGLED_MAX 8192

/* Only _Z (C++ and legacy Rust) and _R (Rust v0) are demangled; other prefixes are ambiguous. */
static bool is_mangled(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2);
}

char *demangle(const char *name, size_t n)
{
	__cleanup(freep) char *own = strndup(name, n);
	__cleanup(freep) char *plain = NULL;
	char *at, *out;

	if (!own || n > MANGLED_MAX || !is_mangled(own))
		return steal(own);
	at = strchr(own, '@'); /* "@plt" is not part of the mangled name */
	if (at)
		*at = '\0';
	plain = cplus_demangle(own, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
	if (at)
		*at = '@';
	if (!plain)
		return steal(own);
	return asprintf(&out, "%s%s", plain, at ? at : "") < 0 ? NULL : out;
}
