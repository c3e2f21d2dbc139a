/* xform.h - from offset, scale and buffer size to numbers */
#ifndef PROFIL_XFORM_H
#define PROFIL_XFORM_H

#include "core/bin.h"
#include "dialect.h"

#define XFORM_OFF 1

/*
 * Reduces what a caller of dialect @d asked for to @out. Only whole counters of the buffer's @bytes
 * count; with none of them @out has a span of 0. Returns 0, XFORM_OFF for a scale that turns
 * profiling off, or -EINVAL for one that the dialect refuses.
 */
int xform_reduce(struct profil_xform *out, const struct dialect *d, __u64 offset, __u64 scale,
		 __u64 bytes);

/* Ends @x before @end, where its span went further. */
void xform_clip(struct profil_xform *x, __u64 end);

#endif
