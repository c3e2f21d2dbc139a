/* demangle.c - demangles C++, Rust and D names */
#if __has_include(<libiberty/demangle.h>)
#include <libiberty/demangle.h>
#else /* Fedora */
#include <demangle.h>
#endif
#include <ctype.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "demangle.h"

/*
 * Longer names are not demangled: the demanglers recurse as deep as a name is long, and take 2 MB
 * of stack for the worst one of this length. Their own limit would be 1024 bytes, less than
 * templates have in practice.
 */
#define MANGLED_MAX 8192
/* Nor are names whose plain form is longer: a few substitutions of substitutions make gigabytes. */
#define PLAIN_MAX 65536
#define OPTIONS (DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO | DMGL_NO_RECURSE_LIMIT)
/*
 * D's demangler allocates the plain form, which grows with the product of repeated back references:
 * with this number to less than 16 MB.
 */
#define D_MANGLED_MAX 4096
#define D_BACK_REFERENCES_MAX 20

struct plain {
	jmp_buf full;
	size_t n;
	char text[PLAIN_MAX];
};

static bool is_of_d(const char *name)
{
	return !strncmp(name, "_D", 2) && isdigit((unsigned char)name[2]);
}

/* _Z is C++ and legacy Rust, _R is Rust v0, _D is D; other prefixes are ambiguous. */
static bool is_mangled(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2) || is_of_d(name);
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

/* Appends the UTF-8 form of @c, which is not ASCII. */
static void put_character(struct plain *p, unsigned long c)
{
	unsigned int more = c > 0xffff ? 3 : c > 0x7ff ? 2 : 1;
	char bytes[4] = { (char)(0xf0 << (3 - more) | c >> 6 * more) };

	for (unsigned int i = 1; i <= more; i++)
		bytes[i] = (char)(0x80 | (c >> 6 * (more - i) & 0x3f));
	put(bytes, more + 1, p);
}

/* Legacy Rust writes a character as $uHEX$, of which libiberty knows those of ASCII only. */
static void put_rust(const char *s, size_t n, void *arg)
{
	const char *upto = s + n;

	while (s < upto) {
		char *end = NULL;
		unsigned long c = 0;

		if (upto - s > 3 && s[0] == '$' && s[1] == 'u' && isxdigit((unsigned char)s[2]))
			c = strtoul(s + 2, &end, 16);
		if (end && end < upto && *end == '$' && c >= 0xa0 && c <= 0x10ffff &&
		    c >> 11 != 0x1b) {
			put_character(arg, c);
			s = end + 1;
		} else {
			put(s++, 1, arg);
		}
	}
}

static bool d_to_plain(struct plain *p, const char *name)
{
	__cleanup(freep) char *text = NULL;
	size_t references = 0;

	for (const char *c = name; *c; c++)
		references += *c == 'Q';
	if (strlen(name) > D_MANGLED_MAX || references > D_BACK_REFERENCES_MAX)
		return false;
	text = dlang_demangle(name, OPTIONS);
	if (!text || strlen(text) >= sizeof(p->text))
		return false;
	strcpy(p->text, text);
	return true;
}

/* Returns whether @name is mangled, and has a plain form that is not too long. */
static bool to_plain(struct plain *p, const char *name)
{
	p->n = 0;
	if (is_of_d(name))
		return d_to_plain(p, name);
	if (setjmp(p->full))
		return false;
	if (rust_demangle_callback(name, OPTIONS, put_rust, p))
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
