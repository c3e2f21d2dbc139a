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

bool utf8_is_control(const char *s, size_t n)
{
	const unsigned char *c = (const unsigned char *)s;
	unsigned int u;

	if (n == 1)
		return *c < ' ' || *c == 0x7f;
	if (n == 2) {
		u = (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu);
		return u < 0xa0 || u == 0x61c;
	}
	if (n != 3)
		return false;
	u = (c[0] & 0x0fu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
	return u == 0x200e || u == 0x200f || (u >= 0x2028 && u <= 0x202e) ||
	       (u >= 0x2066 && u <= 0x2069);
}

char *utf8_clean(const char *s)
{
	char *copy = utf8_copy(s);
	size_t to = 0;

	for (size_t from = 0; copy && copy[from];) {
		size_t n = utf8_bytes(copy + from);

		if (utf8_is_control(copy + from, n))
			copy[to++] = ' ';
		else
			for (size_t i = 0; i < n; i++)
				copy[to++] = copy[from + i];
		from += n;
	}
	if (copy)
		copy[to] = '\0';
	return copy;
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
