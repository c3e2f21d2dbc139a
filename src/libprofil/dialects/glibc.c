/* glibc.c - profil and sprofil with glibc's ABI */
#include <errno.h>
#include <stdint.h>

#include "libprofil/entry.h"
#include "plain.h"
#include "libprofil/daemon_call.h"
#include "sprofil.h"

/*
 * glibc's <unistd.h> declares buf nonnull, but a program passes NULL to stop the profile. With a
 * declaration of our own the compiler keeps the test for NULL.
 */
PROFIL_PUBLIC int profil_glibc(unsigned short *buf, size_t bytes, size_t offset,
			       unsigned int scale) __asm__("profil");

PROFIL_PUBLIC int sprofil(struct prof *profp, int profcnt, struct timeval *tvp, unsigned int flags);

int profil_glibc(unsigned short *buf, size_t bytes, size_t offset, unsigned int scale)
{
	return plain_profil(&dialects[DIALECT_GLIBC], buf, bytes, offset, buf ? scale : 0);
}

int sprofil(struct prof *profp, int profcnt, struct timeval *tvp, unsigned int flags)
{
	struct profil_msg_reply reply;
	struct call c;
	int err = call_enter(&c);

	if (err)
		return call_fail(err);
	if (!profcnt)
		err = request_stop(&reply);
	else
		err = sprofil_start(SPROFIL_GLIBC, profp, profcnt, tvp, flags);
	return call_return(&c, err);
}
