/* bin.h - maps a pc to a bin: BPF programs, daemon and tests compile this same code */
#ifndef PROFIL_CORE_BIN_H
#define PROFIL_CORE_BIN_H

#include <linux/types.h>

#define PROFIL_NO_BIN (~(__u32)0)

/*
 * A dialect's offset and scale, reduced to numbers (src/libprofil/xform.c):
 *
 *	bin = ((((pc - base) >> pre) * mul >> shift) + round) >> post
 *
 * Only pcs in [base, base + span) are counted. @span is precomputed so that no product inside it
 * overflows 64 bits. A @mul of 0 maps every pc of the span to bin 0.
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
 * Returns the bin of @pc, or PROFIL_NO_BIN if @x does not count it. Always inline: a sample would
 * have the cache misses of one more function.
 */
static inline __attribute__((always_inline)) __u32 profil_bin(const struct profil_xform *x,
							      __u64 pc)
{
	__u64 d = pc - x->base; /* wraps for a pc below base, which then fails the same test */
	__u64 bin;

	if (d >= x->span)
		return PROFIL_NO_BIN;

	bin = (((d >> (x->pre & 63)) * x->mul >> (x->shift & 63)) + x->round) >> (x->post & 63);
	return bin < x->nbins ? (__u32)bin : PROFIL_NO_BIN;
}

/*
 * Returns @old + @n, saturated at @cap; a counter that is already above @cap is unchanged. Nothing
 * wraps.
 */
static inline __u32 profil_add(__u32 old, __u64 n, __u32 cap)
{
	if (old >= cap)
		return old;
	return n >= cap - old ? cap : old + (__u32)n;
}

#endif
