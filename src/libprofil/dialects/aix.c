/* aix.c - AIX's profil: two syntaxes, and calls without effect while a profile is on */
#include <errno.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "libprofil/entry.h"
#include "libprofil/overlap.h"
#include "libprofil/daemon_call.h"
#include "libprofil/xform.h"

#define WHOLE_RANGE UINT32_MAX /* p_scale: as fine as p_buff has room for */
#define FORM_TWO UINT32_MAX    /* BufferSize: the buffer is an array of ranges */

/* struct prof of <mon.h>, with integers for its pointers. */
struct prof {
	uint64_t p_low;
	uint64_t p_high;
	uint64_t p_buff;
	uint32_t p_bufsize;
	uint32_t p_scale;
};
_Static_assert(sizeof(struct prof) == 32, "the caller's layout");

PROFIL_PUBLIC int profil_aix(void *buffer, unsigned int bytes, unsigned long offset,
			     unsigned int scale);

static const struct dialect *const aix = &dialects[DIALECT_AIX];

static int is_on(void)
{
	return request_mode() == REQUEST_AIX_BUFFER || request_mode() == REQUEST_AIX_ARRAY;
}

/* Stops a profile of the same syntax. Otherwise it has no effect and succeeds. */
static int turn_off(enum request_mode syntax)
{
	struct profil_msg_reply reply;

	return request_mode() == syntax ? request_stop(&reply) : 0;
}

static int use_buffer(const void *buffer, unsigned int bytes, unsigned long offset,
		      unsigned int scale)
{
	struct profil_xform x;

	if (xform_reduce(&x, aix, offset, scale, bytes) == XFORM_OFF)
		return turn_off(REQUEST_AIX_BUFFER);
	return is_on() ? 0 : request_start_one(aix, &x, buffer, REQUEST_AIX_BUFFER, NULL);
}

/* As V7's monitor() computes it, but at least 2, because smaller scales mean off. */
static uint32_t finest_scale(const struct prof *p)
{
	uint64_t range = p->p_high - p->p_low;
	uint64_t scale = ((uint64_t)p->p_bufsize << 16) / range;

	if (scale > 0xffff)
		return 0xffff;
	return scale < 2 ? 2 : (uint32_t)scale;
}

/* Adds a range from @floor on: the first range with p_high above a pc decides about that pc. */
static void add_range(struct regions *r, const struct prof *p, uint64_t floor)
{
	struct profil_xform x;
	uint32_t scale;

	if (p->p_low >= p->p_high)
		return;
	scale = p->p_scale == WHOLE_RANGE ? finest_scale(p) : p->p_scale;
	if (xform_reduce(&x, aix, p->p_low, scale, p->p_bufsize) == XFORM_OFF)
		return;
	xform_clip(&x, p->p_high);
	regions_add(r, &x, (void *)p->p_buff, 0);
	if (floor > p->p_low)
		r->region[r->n - 1].lo = floor;
}

/* Adds the ranges of @array up to its terminator; @first is a copy of the first. */
static int add_ranges(struct regions *r, const struct prof *array, const struct prof *first)
{
	struct prof p = *first;
	uint64_t floor = 0;
	int err;

	while (p.p_high) {
		if (p.p_high <= floor)
			return -EINVAL;
		if (r->n == REGIONS_MAX)
			return -EFAULT; /* AIX's error if it cannot pin so much */
		add_range(r, &p, floor);
		floor = p.p_high;
		err = call_copy_in(&p, ++array, sizeof(p));
		if (err)
			return err;
	}
	return 0;
}

static int start_array(const struct prof *array, const struct prof *first)
{
	__cleanup(regions_freep) struct regions *r = regions_new();
	struct profil_msg_reply reply;
	int err;

	if (!r)
		return -ENOMEM;
	err = add_ranges(r, array, first);
	if (err)
		return err;
	regions_cut(r, aix);
	return request_start(&r->m.start, REQUEST_AIX_ARRAY, &reply);
}

static int use_array(const struct prof *array)
{
	struct prof first;
	int err = call_copy_in(&first, array, sizeof(first));

	if (err)
		return err;
	if (!first.p_high)
		return turn_off(REQUEST_AIX_ARRAY);
	return is_on() ? 0 : start_array(array, &first);
}

int profil_aix(void *buffer, unsigned int bytes, unsigned long offset, unsigned int scale)
{
	struct call c;
	int err = call_enter(&c);

	if (err)
		return call_fail(err);
	if (bytes == FORM_TWO)
		err = use_array(buffer);
	else
		err = use_buffer(buffer, bytes, offset, scale);
	return call_return(&c, err);
}
