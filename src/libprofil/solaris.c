/* solaris.c - profil and pcsample as Solaris has them */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "call.h"
#include "plain.h"
#include "request.h"

PROFIL_PUBLIC int profil_solaris(unsigned short *buf, size_t bytes, unsigned long offset,
				 unsigned int scale);
PROFIL_PUBLIC long pcsample_solaris(uintptr_t samples[], long nsamples);

int profil_solaris(unsigned short *buf, size_t bytes, unsigned long offset, unsigned int scale)
{
	return plain_profil(&dialects[DIALECT_SOLARIS], buf, bytes, offset, scale);
}

/* Has the pcs themselves written to @samples, as many as there is room for. */
static int start_pcs(uintptr_t *samples, long nsamples)
{
	static const struct dialect pcs = {
		.width = sizeof(samples[0]),
		.cap = UINT32_MAX,
		.flags = PROFIL_START_PCS | PROFIL_START_FAULT_ENDS,
	};
	struct profil_xform everywhere = {
		.span = UINT64_MAX,
		.nbins = nsamples < PROFIL_NO_BIN ? (uint32_t)nsamples : PROFIL_NO_BIN,
	};

	return request_start_one(&pcs, &everywhere, samples, REQUEST_PCSAMPLE, NULL);
}

/* A pcsample that is on is stopped even by one that goes on: so that its count is its last word. */
long pcsample_solaris(uintptr_t samples[], long nsamples)
{
	struct profil_msg_reply last = { .stored = 0 };
	struct call c;
	int err = call_enter(&c);

	if (err)
		return call_fail(err);
	if (nsamples < 0)
		err = -EINVAL;
	else if (!nsamples || request_mode() == REQUEST_PCSAMPLE)
		err = request_stop(&last);
	if (!err && nsamples)
		err = start_pcs(samples, nsamples);
	err = call_return(&c, err);
	return err ? err : (long)last.stored;
}
