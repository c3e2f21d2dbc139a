/* irix.c - IRIX's profil and sprofil */
#include <errno.h>

#include "libprofil/entry.h"
#include "sprofil.h"

PROFIL_PUBLIC int profil_irix(unsigned short *buf, unsigned int bytes, unsigned long offset,
			      unsigned int scale);
PROFIL_PUBLIC int sprofil_irix(struct prof *profp, int profcnt, struct timeval *tvp,
			       unsigned int flags);

/* By IRIX's sprofil(2), profil is sprofil with one entry. */
int profil_irix(unsigned short *buf, unsigned int bytes, unsigned long offset, unsigned int scale)
{
	struct prof one = { buf, bytes, offset, scale };

	return sprofil_irix(&one, 1, NULL, 0);
}

int sprofil_irix(struct prof *profp, int profcnt, struct timeval *tvp, unsigned int flags)
{
	struct call c;
	int err = call_enter(&c);

	if (err)
		return call_fail(err);
	if (!profcnt)
		err = -E2BIG;
	else
		err = sprofil_start(SPROFIL_IRIX, profp, profcnt, tvp, flags);
	return call_return(&c, err);
}
