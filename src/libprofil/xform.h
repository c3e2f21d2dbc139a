/* xform.h - reduces offset, scale and buffer size to struct profil_xform */
#ifndef PROFIL_LIBPROFIL_XFORM_H
#define PROFIL_LIBPROFIL_XFORM_H

#include "core/bin.h"
#include "dialect.h"

#define XFORM_OFF 1

/*
 * Reduces the arguments of a caller of dialect @d to @out. Only whole counters in the buffer's
 * @bytes are used; if there is none, @out has a span of 0. Returns 0, XFORM_OFF for a scale that
 * turns profiling off, or -EINVAL for one that the dialect refuses.
 */
int xform_reduce(struct profil_xform *out, const struct dialect *d, __u64 offset, __u64 scale,
		 __u64 bytes);

/* Shortens the span of @x so that it ends at or before @end. */
void xform_clip(struct profil_xform *x, __u64 end);

#endif
