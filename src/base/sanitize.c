/* sanitize.c - makes strings of unknown origin safe to print on a terminal */
#include <stdbool.h>
#include <string.h>

#include "sanitize.h"
#include "utf8.h"

/* Control characters: below U+0020, and U+007F to U+009F. */
static bool is_control(const char *s, size_t n)
{
	return (n == 1 && ((unsigned char)*s < ' ' || *s == 0x7f)) ||
	       (n == 2 && !strncmp(s, "\302", 1) && (unsigned char)s[1] < 0xa0);
}

const char *sanitize(char *out, size_t bytes, const char *s)
{
	size_t at = 0;

	while (*s) {
		size_t n = utf8_bytes(s);

		if (at + (n ? n : 1) >= bytes)
			break;
		if (!n || is_control(s, n)) {
			out[at++] = n ? ' ' : '?';
		} else {
			memcpy(out + at, s, n);
			at += n;
		}
		s += n ? n : 1;
	}
	out[at] = '\0';
	return out;
}
