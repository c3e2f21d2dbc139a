/* clean.c - strings of unknown origin, made fit for a terminal */
#include "clean.h"

const char *clean(char *out, size_t bytes, const char *s)
{
	size_t n = 0;

	for (; s[n] && n + 1 < bytes; n++)
		out[n] = (unsigned char)s[n] < ' ' || s[n] == 0x7f ? ' ' : s[n];
	out[n] = '\0';
	return out;
}
