/* v7.c - the Seventh Edition's profil */
#include "libprofil/entry.h"
#include "plain.h"

PROFIL_PUBLIC int profil_v7(void *buf, unsigned int bytes, unsigned long offset,
			    unsigned int scale);

int profil_v7(void *buf, unsigned int bytes, unsigned long offset, unsigned int scale)
{
	return plain_profil(&dialects[DIALECT_V7], buf, bytes, offset, scale);
}
