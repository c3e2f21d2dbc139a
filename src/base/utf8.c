/* utf8.c - UTF-8 validation */
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

size_t utf8_bytes(const char *s)
{
	const unsigned char *c = (const unsigned char *)s;
	size_t n = c[0] < 0x80 ? 1 : c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 : 4;

	if (!c[0] || c[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	}
	/* Rejects overlong forms, surrogates and values beyond U+10FFFF. */
	if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
	    (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
		return 0;
	return n;
}

bool utf8_is_valid(const char *s)
{
	while (utf8_bytes(s))
		s += utf8_bytes(s);
	return !*s;
}

char *utf8_copy(const char *s)
{
	static const char unknown[] = "\357\277\275"; /* U+FFFD */
	char *copy = malloc(strlen(unknown) * strlen(s) + 1);
	size_t at = 0;

	while (copy && *s) {
		size_t n = utf8_bytes(s), put = n ? n : strlen(unknown);

		memcpy(copy + at, n ? s : unknown, put);
		at += put;
		s += n ? n : 1;
	}
	if (copy)
		copy[at] = '\0';
	return copy;
}
