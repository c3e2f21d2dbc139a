/* xform.c - reduces offset, scale and buffer size to struct profil_xform */
#include <errno.h>
#include <stdint.h>

#include "xform.h"

/* The span of all pcs at or above @base. A larger one would wrap and include pcs below it. */
static __u64 span_to_top(__u64 base)
{
	return base ? -base : UINT64_MAX;
}

/*
 * The first distance from base that is not counted. These conditions are equivalent to bin < nbins:
 *
 *	(d >> pre) * mul >> shift	< (nbins << post) - round
 *	d >> pre			< ceil(((nbins << post) - round << shift) / mul)
 *
 * With nbins below 2^32 the dividend stays below 2^50, and so does every product inside the span.
 */
static __u64 span_of(const struct profil_xform *x)
{
	__u64 limit = ((__u64)x->nbins << x->post) - x->round;
	__u64 top = span_to_top(x->base), span;

	if (!x->nbins)
		return 0;
	if (!x->mul)
		return top;

	span = ((limit << x->shift) + x->mul - 1) / x->mul << x->pre;
	return span < top ? span : top;
}

int xform_reduce(struct profil_xform *out, const struct dialect *d, __u64 offset, __u64 scale,
		 __u64 bytes)
{
	__u64 counters = bytes / d->width;
	int clock;

	scale &= d->mask;
	if (scale < d->least)
		return XFORM_OFF;
	if (scale > d->most)
		return -EINVAL;

	clock = scale == 2 &&
		(d->clock == DIALECT_CLOCK_ALWAYS || (d->clock == DIALECT_CLOCK_AT_0 && !offset));
	*out = (struct profil_xform){
		.base = offset,
		.mul = clock ? 0 : (__u32)(scale >> d->drop),
		/* The last u32 is PROFIL_NO_BIN. The daemon refuses far smaller buffers. */
		.nbins = counters < PROFIL_NO_BIN ? (__u32)counters : PROFIL_NO_BIN,
		.pre = d->pre,
		.shift = d->shift,
		.round = clock ? 0 : d->round,
		.post = d->post,
	};
	out->span = span_of(out);
	return 0;
}

void xform_clip(struct profil_xform *x, __u64 end)
{
	__u64 most = end > x->base ? end - x->base : 0;

	if (x->span > most)
		x->span = most;
}
