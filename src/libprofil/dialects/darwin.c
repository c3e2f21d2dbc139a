/* darwin.c - Darwin's profil and add_profil */
#include <errno.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "libprofil/entry.h"
#include "libprofil/overlap.h"
#include "libprofil/daemon_call.h"
#include "libprofil/xform.h"

#define ADDED_MAX 64

PROFIL_PUBLIC int profil_darwin(char *samples, size_t bytes, unsigned long offset,
				unsigned int scale);
PROFIL_PUBLIC int add_profil_darwin(char *samples, size_t bytes, unsigned long offset,
				    unsigned int scale);

/* profil's buffer, then the added ones; all are cut again with each added one. */
static struct {
	struct profil_xform x;
	const void *samples;
} buffers[1 + ADDED_MAX];
static unsigned int nbuffers;

static const struct dialect *const bsd = &dialects[DIALECT_BSD];

/* Stops the profile after -EFAULT. */
static int ended_by_fault(int err)
{
	struct profil_msg_reply reply;

	if (err == -EFAULT)
		request_stop(&reply);
	return err;
}

static int start(const void *samples, const struct profil_xform *x)
{
	int err = request_start_one(bsd, x, samples, REQUEST_DARWIN, NULL);

	if (err)
		return ended_by_fault(err);
	buffers[0].x = *x;
	buffers[0].samples = samples;
	nbuffers = 1;
	return 0;
}

int profil_darwin(char *samples, size_t bytes, unsigned long offset, unsigned int scale)
{
	struct profil_msg_reply reply;
	struct profil_xform x;
	struct call c;
	int err = call_enter(&c);

	if (err)
		return call_fail(err);
	err = xform_reduce(&x, bsd, offset, scale, bytes);
	if (err == XFORM_OFF)
		err = request_stop(&reply);
	else if (!err)
		err = start(samples, &x);
	return call_return(&c, err);
}

/* profil's buffer is searched first, then the newest of the added ones. */
static int extend(void)
{
	__cleanup(regions_freep) struct regions *r = regions_new();
	struct profil_msg_reply reply;

	if (!r)
		return -ENOMEM;
	for (unsigned int i = 0; i < nbuffers; i++)
		regions_add(r, &buffers[i].x, buffers[i].samples, i ? nbuffers - i : 0);
	regions_cut(r, bsd);
	return request_extend(&r->m.start, &reply);
}

static int add(const void *samples, const struct profil_xform *x)
{
	int err;

	if (nbuffers == sizeof(buffers) / sizeof(buffers[0]))
		return -EAGAIN;
	buffers[nbuffers].x = *x;
	buffers[nbuffers].samples = samples;
	nbuffers++;
	err = extend();
	if (err)
		nbuffers--;
	return err == -ESRCH ? 0 : ended_by_fault(err);
}

int add_profil_darwin(char *samples, size_t bytes, unsigned long offset, unsigned int scale)
{
	struct profil_xform x;
	struct call c;
	int err = call_enter(&c);

	if (err)
		return call_fail(err);
	if (request_mode() == REQUEST_DARWIN)
		err = xform_reduce(&x, bsd, offset, scale, bytes);
	else
		err = XFORM_OFF;
	err = err ?: add(samples, &x);
	return call_return(&c, err == XFORM_OFF ? 0 : err);
}
