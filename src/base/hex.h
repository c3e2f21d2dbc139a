/* hex.h - bytes as hexadecimal digits: build ids, random words */
#ifndef PROFIL_BASE_HEX_H
#define PROFIL_BASE_HEX_H

#include <stddef.h>

/* Writes two digits for each of the @n bytes and a NUL; leaves out bytes for which @room is short.
 */
static inline void hex_write(char *out, size_t room, const void *bytes, size_t n)
{
	const unsigned char *from = bytes;
	size_t at = 0;

	for (size_t i = 0; i < n && at + 3 <= room; i++) {
		out[at++] = "0123456789abcdef"[from[i] >> 4];
		out[at++] = "0123456789abcdef"[from[i] & 15];
	}
	out[at] = '\0';
}

#endif
