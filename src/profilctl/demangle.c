/* demangle.c - names as their languages write them */
#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

#include "core/scope.h"

#include "demangle.h"

/* A mangled name of megabytes is an attack on whoever reads it. */
#define MANGLED_MAX 8192

char *demangle(const char *name, size_t n)
{
	__cleanup(freep) char *own = strndup(name, n);
	char *plain;

	/* Others than these prefixes may be anybody's names. */
	if (!own || n > MANGLED_MAX || (strncmp(own, "_Z", 2) && strncmp(own, "_R", 2)))
		return steal(own);
	plain = cplus_demangle(own, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
	return plain ? plain : steal(own);
}
