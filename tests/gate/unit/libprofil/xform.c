/* xform.c - the reduction against each dialect's formula in 128-bit arithmetic */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "libprofil/xform.h"

#define TUPLES 10000000

typedef unsigned __int128 u128;

struct tuple {
	__u64 offset;
	__u64 scale;
	__u64 bytes;
	__u64 pc;
};

/* The result of a dialect's documented formula. */
enum verdict { COUNTS, NOWHERE, OFF, INVALID };

static enum verdict within(u128 bin, u128 n, u128 *out)
{
	*out = bin;
	return bin < n ? COUNTS : NOWHERE;
}

static enum verdict model_aix(const struct tuple *t, u128 *bin)
{
	u128 s = t->scale % 65536, n = t->bytes / 2;

	if (s == 0 || s == 1)
		return OFF;
	if (t->pc < t->offset)
		return NOWHERE;
	if (s == 2)
		return within(0, n, bin);
	return within((((u128)(t->pc - t->offset) * s / 65536 + 1) & ~(u128)1) / 2, n, bin);
}

static enum verdict model_irix(const struct tuple *t, u128 *bin, unsigned int width)
{
	u128 s = (uint32_t)t->scale, n = t->bytes / width;

	if (s == 0 || s == 1)
		return OFF;
	if (t->pc < t->offset)
		return NOWHERE;
	if (s == 2)
		return within(0, n, bin);
	return within((u128)(t->pc - t->offset) * s / 65536 / width, n, bin);
}

static enum verdict model_bsd(const struct tuple *t, u128 *bin)
{
	u128 s = (uint32_t)t->scale;

	if (s == 0)
		return OFF;
	if (s > 65536)
		return INVALID;
	if (t->pc < t->offset)
		return NOWHERE;
	return within((u128)(t->pc - t->offset) * s / 131072, t->bytes / 2, bin);
}

static enum verdict model_solaris(const struct tuple *t, u128 *bin)
{
	u128 s = (uint32_t)t->scale, n = t->bytes / 2;

	if (s == 0 || s == 1)
		return OFF;
	if (t->pc < t->offset)
		return NOWHERE;
	if (s == 2)
		return within(0, n, bin);
	return within((u128)(t->pc - t->offset) * s / 65536 / 2, n, bin);
}

static enum verdict model_glibc(const struct tuple *t, u128 *bin)
{
	u128 s = (uint32_t)t->scale;

	if (s == 0)
		return OFF;
	if (t->pc < t->offset)
		return NOWHERE;
	return within((t->pc - t->offset) / 2 * s / 65536, t->bytes / 2, bin);
}

static enum verdict model_sprofil(const struct tuple *t, u128 *bin, unsigned int width)
{
	u128 s = (uint32_t)t->scale, n = t->bytes / width;

	if (s == 0 || s == 1)
		return OFF;
	if (s == 2 && t->offset == 0)
		return within(0, n, bin);
	if (t->pc < t->offset)
		return NOWHERE;
	return within((t->pc - t->offset) / width * s / 65536, n, bin);
}

static enum verdict model_v7(const struct tuple *t, u128 *bin)
{
	u128 s = t->scale % 65536, byte;

	if (s == 0)
		return OFF;
	if (t->pc < t->offset)
		return NOWHERE;
	byte = ((u128)((t->pc - t->offset) >> 1) * (s >> 1) >> 14) + 1;
	return within(byte / 2, t->bytes / 2, bin);
}

static enum verdict model(int row, const struct tuple *t, u128 *bin)
{
	switch (row) {
	case DIALECT_AIX:
		return model_aix(t, bin);
	case DIALECT_IRIX_USHORT:
		return model_irix(t, bin, 2);
	case DIALECT_IRIX_UINT:
		return model_irix(t, bin, 4);
	case DIALECT_BSD:
		return model_bsd(t, bin);
	case DIALECT_SOLARIS:
		return model_solaris(t, bin);
	case DIALECT_GLIBC:
		return model_glibc(t, bin);
	case DIALECT_GLIBC_SPROFIL_USHORT:
		return model_sprofil(t, bin, 2);
	case DIALECT_GLIBC_SPROFIL_UINT:
		return model_sprofil(t, bin, 4);
	case DIALECT_V7:
		return model_v7(t, bin);
	default:
		cr_assert_fail("dialect %d has no model", row);
		return INVALID;
	}
}

static __u64 state = 88172645463325252ULL;

static __u64 random64(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Numbers of all sizes: most errors are near 0 and near the maximum. */
static __u64 random_size(unsigned int bits)
{
	return random64() >> (64 - bits) >> random64() % bits;
}

static __u64 random_scale(void)
{
	switch (random64() % 4) {
	case 0:
		return random64() % 5;
	case 1:
		return 0x10000 + random64() % 5 - 2;
	case 2:
		return 1ULL << random64() % 32;
	default:
		return random_size(32);
	}
}

/* pcs near the start, near the end of the span, in it, and anywhere. */
static __u64 random_pc(const struct tuple *t, const struct profil_xform *x)
{
	switch (random64() % 5) {
	case 0:
		return t->offset + random64() % 9 - 4;
	case 1:
		return t->offset + x->span + random64() % 9 - 4;
	case 2:
	case 3:
		return t->offset + (x->span ? random64() % x->span : 0);
	default:
		return random_size(64);
	}
}

static void check_tuple(int row, const struct tuple *t, int err, const struct profil_xform *x)
{
	u128 want = 0;
	__u32 bin = err ? 0 : profil_bin(x, t->pc);
	enum verdict got = err == XFORM_OFF ? OFF
			   : err	    ? INVALID
					    : (bin == PROFIL_NO_BIN ? NOWHERE : COUNTS);
	enum verdict should = model(row, t, &want);

	cr_assert(got == should && (got != COUNTS || bin == want),
		  "%s: offset %#llx scale %#llx bytes %llu pc %#llx: verdict %d bin %u, model %d "
		  "%llu",
		  dialects[row].name, t->offset, t->scale, t->bytes, t->pc, got, bin, should,
		  (unsigned long long)want);
}

/* The top of the address space is where a sum may wrap. */
static __u64 random_offset(void)
{
	switch (random64() % 4) {
	case 0:
		return -random_size(32);
	case 1:
		return 0;
	default:
		return random_size(64);
	}
}

static void check_dialect(int row)
{
	for (int i = 0; i < TUPLES; i++) {
		struct tuple t = {
			.offset = random_offset(),
			.scale = random_scale(),
			.bytes = random_size(33),
		};
		struct profil_xform x = { 0 };
		int err = xform_reduce(&x, &dialects[row], t.offset, t.scale, t.bytes);

		t.pc = random_pc(&t, &x);
		if (t.pc !=
		    UINT64_MAX) /* no instruction fits there; a span from 0 ends before it */
			check_tuple(row, &t, err, &x);
	}
}

Test(xform, aix_matches_its_formula)
{
	check_dialect(DIALECT_AIX);
}

Test(xform, irix_ushort_matches_its_formula)
{
	check_dialect(DIALECT_IRIX_USHORT);
}

Test(xform, irix_uint_matches_its_formula)
{
	check_dialect(DIALECT_IRIX_UINT);
}

Test(xform, bsd_matches_its_formula)
{
	check_dialect(DIALECT_BSD);
}

Test(xform, solaris_matches_its_formula)
{
	check_dialect(DIALECT_SOLARIS);
}

Test(xform, glibc_matches_its_formula)
{
	check_dialect(DIALECT_GLIBC);
}

Test(xform, glibc_sprofil_ushort_matches_its_formula)
{
	check_dialect(DIALECT_GLIBC_SPROFIL_USHORT);
}

Test(xform, glibc_sprofil_uint_matches_its_formula)
{
	check_dialect(DIALECT_GLIBC_SPROFIL_UINT);
}

Test(xform, v7_matches_its_formula)
{
	check_dialect(DIALECT_V7);
}

/* A buffer larger than any memory: counters with 32-bit numbers still count correctly. */
Test(xform, buffers_past_32_bits_lose_only_their_end)
{
	struct profil_xform x;

	cr_assert_eq(0, xform_reduce(&x, &dialects[DIALECT_BSD], 0, 0x10000, UINT64_MAX));
	cr_expect_eq(0x7fffffff, profil_bin(&x, 0xffffffffULL));
	cr_expect_eq(0xfffffffe, profil_bin(&x, 0x1fffffffdULL));
	cr_expect_eq(PROFIL_NO_BIN, profil_bin(&x, 0x1fffffffeULL));
}

Test(xform, clip_ends_a_span_and_never_widens_it)
{
	struct profil_xform x = { .base = 100, .span = 50 };

	xform_clip(&x, 200);
	cr_expect_eq(50, x.span);
	xform_clip(&x, 120);
	cr_expect_eq(20, x.span);
	xform_clip(&x, 100);
	cr_expect_eq(0, x.span);
	x.span = 50;
	xform_clip(&x, 0);
	cr_expect_eq(0, x.span);
}
