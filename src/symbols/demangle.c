/* demangle.c - demangles C++ and Rust names */
#if __has_include(<libiberty/demangle.h>)
#include <libiberty/demangle.h>
#else /* Fedora */
#include <demangle.h>
#endif
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "demangle.h"

/* Longer names are not demangled: a mangled name of megabytes is an attack. */
#define MANGLED_MAX 8192
/* Nor are names whose plain form is longer: a few substitutions of substitutions make gigabytes. */
#define PLAIN_MAX 65536
#define OPTIONS (DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO)

struct plain {
	jmp_buf full;
	size_t n;
	char text[PLAIN_MAX];
};

/* Only _Z (C++ and legacy Rust) and _R (Rust v0) are demangled; other prefixes are ambiguous. */
static bool is_mangled(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2);
}

/* The demanglers cannot be stopped but by leaving them. */
static void put(const char *s, size_t n, void *arg)
{
	struct plain *p = arg;

	if (n >= sizeof(p->text) - p->n)
		longjmp(p->full, 1);
	memcpy(p->text + p->n, s, n);
	p->n += n;
	p->text[p->n] = '\0';
}

/* Returns whether @name is mangled, and has a plain form that is not too long. */
static bool to_plain(struct plain *p, const char *name)
{
	p->n = 0;
	if (setjmp(p->full))
		return false;
	if (rust_demangle_callback(name, OPTIONS, put, p))
		return true;
	p->n = 0;
	return cplus_demangle_v3_callback(name, OPTIONS, put, p);
}

char *demangle(const char *name, size_t n)
{
	__cleanup(freep) char *own = strndup(name, n);
	__cleanup(freep) struct plain *plain = NULL;
	char *at, *out;
	bool is_plain;

	if (!own || n > MANGLED_MAX || !is_mangled(own))
		return steal(own);
	at = strchr(own, '@'); /* "@plt" is not part of the mangled name */
	if (at)
		*at = '\0';
	plain = malloc(sizeof(*plain));
	is_plain = plain && to_plain(plain, own);
	if (at)
		*at = '@';
	if (!is_plain)
		return steal(own);
	return asprintf(&out, "%s%s", plain->text, at ? at : "") < 0 ? NULL : out;
}
