/* solaris.c - Solaris's profil and pcsample */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "libprofil/entry.h"
#include "plain.h"
#include "libprofil/daemon_call.h"

PROFIL_PUBLIC int profil_solaris(unsigned short *buf, size_t bytes, unsigned long offset,
				 unsigned int scale);
PROFIL_PUBLIC long pcsample_solaris(uintptr_t samples[], long nsamples);

int profil_solaris(unsigned short *buf, size_t bytes, unsigned long offset, unsigned int scale)
{
	return plain_profil(&dialects[DIALECT_SOLARIS], buf, bytes, offset, scale);
}

static long room; /* of the running pcsample, in pcs: upper bound for the daemon's count */

/* Starts a profile that stores the pcs themselves in @samples. */
static int start_pcs(uintptr_t *samples, long nsamples)
{
	int err;

	static const struct dialect pcs = {
		.width = sizeof(samples[0]),
		.cap = UINT32_MAX,
		.flags = PROFIL_START_PCS | PROFIL_START_FAULT_ENDS,
	};
	struct profil_xform everywhere = {
		.span = UINT64_MAX,
		.nbins = nsamples < PROFIL_NO_BIN ? (uint32_t)nsamples : PROFIL_NO_BIN,
	};

	err = request_start_one(&pcs, &everywhere, samples, REQUEST_PCSAMPLE, NULL);
	if (!err)
		room = nsamples;
	return err;
}

/* Stops a running pcsample before it starts the next, so that the returned count is final. */
long pcsample_solaris(uintptr_t samples[], long nsamples)
{
	struct profil_msg_reply last = { .stored = 0 };
	enum request_mode before;
	struct call c;
	long stored = 0;
	int err = call_enter(&c);

	if (err)
		return call_fail(err);
	before = request_mode();
	if (nsamples < 0)
		err = -EINVAL;
	else if (!nsamples || before == REQUEST_PCSAMPLE)
		err = request_stop(&last);
	if (before == REQUEST_PCSAMPLE)
		stored = last.stored < (__u64)room ? (long)last.stored : room;
	if (!err && nsamples)
		err = start_pcs(samples, nsamples);
	err = call_return(&c, err);
	return err ? err : stored;
}
