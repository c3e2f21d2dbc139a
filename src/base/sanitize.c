/* sanitize.c - makes strings of unknown origin safe to print on a terminal */
#include <string.h>

#include "sanitize.h"
#include "utf8.h"

const char *sanitize(char *out, size_t bytes, const char *s)
{
	size_t at = 0;

	while (*s) {
		size_t n = utf8_bytes(s);

		if (at + (n ? n : 1) >= bytes)
			break;
		if (!n || utf8_is_control(s, n)) {
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
