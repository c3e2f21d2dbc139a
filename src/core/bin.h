/* bin.h - from a pc to a bin: the one arithmetic that kernel, daemon and tests compile */
#ifndef PROFIL_BIN_H
#define PROFIL_BIN_H

#include <linux/types.h>

#define PROFIL_NO_BIN (~(__u32)0)

/*
 * A dialect's offset and scale, reduced to numbers (src/libprofil/xform.c):
 *
 *	bin = ((((pc - base) >> pre) * mul >> shift) + round) >> post
 *
 * @span is how many bytes above @base count at all. It is precomputed with 128-bit arithmetic so
 * that inside it no product can leave 64 bits. A @mul of 0 puts every pc of the span into bin 0.
 */
struct profil_xform {
	__u64 base;
	__u64 span;
	__u32 mul;
	__u32 nbins;
	__u8 pre;
	__u8 shift;
	__u8 round;
	__u8 post;
	__u32 zero;
};
_Static_assert(sizeof(struct profil_xform) == 32, "lies in maps and messages");

/*
 * Returns the bin of @pc, or PROFIL_NO_BIN where @x does not count it. Inline whatever the compiler
 * thinks: a tick would have the cache misses of one more function.
 */
static inline __attribute__((always_inline)) __u32 profil_bin(const struct profil_xform *x,
							      __u64 pc)
{
	__u64 d = pc - x->base; /* a pc below base wraps, and fails the same test */
	__u64 bin;

	if (d >= x->span)
		return PROFIL_NO_BIN;

	bin = (((d >> (x->pre & 63)) * x->mul >> (x->shift & 63)) + x->round) >> (x->post & 63);
	return bin < x->nbins ? (__u32)bin : PROFIL_NO_BIN;
}

/*
 * Returns @old + @n, at most @cap; a counter that already stands above @cap stays as it is. The
 * counters themselves are 32 bits wide, so no sum wraps.
 */
static inline __u32 profil_add(__u32 old, __u64 n, __u32 cap)
{
	if (old >= cap)
		return old;
	return n >= cap - old ? cap : old + (__u32)n;
}

#endif
