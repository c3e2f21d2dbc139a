/* plain.c - the common profil(2): one buffer, with a dialect's parameters */
#include "libprofil/entry.h"
#include "plain.h"
#include "libprofil/daemon_call.h"
#include "libprofil/xform.h"

int plain_profil(const struct dialect *d, const void *buf, __u64 bytes, __u64 offset, __u64 scale)
{
	struct profil_msg_reply reply;
	struct profil_xform x;
	struct call c;
	int err = call_enter(&c);

	if (err)
		return call_fail(err);
	err = xform_reduce(&x, d, offset, scale, bytes);
	if (err == XFORM_OFF)
		err = request_stop(&reply);
	else if (!err)
		err = request_start_one(d, &x, buf, REQUEST_ON, NULL);
	return call_return(&c, err);
}
