/* xform_regions.c - the cutting of regions against the search rule, tried on every pc */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "libprofil/overlap.h"
#include "libprofil/xform.h"

#define ROUNDS 4000
#define PCS 400

static unsigned int random_below(unsigned int n)
{
	return (unsigned int)rand() % n;
}

/* The buffer and counter that a pc adds to. */
struct hit {
	__u64 addr;
	__u32 bin;
};

static struct hit hit_in(const struct region *in, __u64 pc)
{
	return (struct hit){ in->addr, pc < in->lo ? PROFIL_NO_BIN : profil_bin(&in->x, pc) };
}

/* A dialect's documented rule: of the regions that contain the pc, that of the smallest rank
 * decides. */
static struct hit model(const struct regions *r, __u64 pc)
{
	const struct region *best = NULL;

	for (unsigned int i = 0; i < r->n; i++) {
		const struct region *in = &r->region[i];

		if (pc < in->lo || (in->kind == REGION_OPEN && hit_in(in, pc).bin == PROFIL_NO_BIN))
			continue;
		if (!best || in->rank < best->rank)
			best = in;
	}
	if (!best)
		return (struct hit){ 0, PROFIL_NO_BIN };
	if (best->kind == REGION_ALONE && hit_in(best, pc).bin == PROFIL_NO_BIN &&
	    r->overflow < r->n)
		best = &r->region[r->overflow];
	return hit_in(best, pc);
}

/* The bin by the search of daemon and kernel. */
static struct hit look_up(const struct regions *r, __u64 pc)
{
	const struct profil_msg_start *m = &r->m.start;
	unsigned int i = m->nregions;

	while (i && m->region[i - 1].lo > pc)
		i--;
	if (!i)
		return (struct hit){ 0, PROFIL_NO_BIN };
	return (struct hit){ m->region[i - 1].addr, profil_bin(&m->region[i - 1].x, pc) };
}

/* The invariants on which the daemon relies. */
static void check_pieces(const struct regions *r)
{
	const struct profil_msg_start *m = &r->m.start;

	cr_assert(m->nregions <= 2 * r->n + 1);
	for (unsigned int i = 0; i < m->nregions; i++) {
		const struct profil_msg_region *p = &m->region[i];
		const struct profil_msg_region *owner = &m->region[p->owner];

		cr_assert(!i || m->region[i - 1].lo < p->lo, "piece %u is not sorted", i);
		cr_assert(p->owner <= i && owner->owner == p->owner && owner->addr == p->addr &&
				  owner->x.nbins == p->x.nbins,
			  "piece %u has the owner %u", i, p->owner);
	}
}

static void check_pc(const struct regions *r, __u64 pc)
{
	struct hit want = model(r, pc), got = look_up(r, pc);

	cr_assert(got.bin == want.bin && (got.bin == PROFIL_NO_BIN || got.addr == want.addr),
		  "%u regions, pc %#llx: bin %u of buffer %llu, not bin %u of buffer %llu", r->n,
		  pc, got.bin, got.addr, want.bin, want.addr);
}

/* Entries of IRIX's sprofil(2): some are off, without a counter, or have scale 2. */
static void add_random_irix(struct regions *r, __u64 base)
{
	static const unsigned int scales[] = { 0, 1, 2, 3, 0x8000, 0x10000, 0x20000 };
	struct profil_xform x = { .base = base + random_below(PCS) };
	unsigned int scale = scales[random_below(7)];
	int off = xform_reduce(&x, &dialects[DIALECT_IRIX_USHORT], x.base, scale,
			       random_below(80)) == XFORM_OFF;

	regions_add(r, &x, (void *)(uintptr_t)(r->n + 1), UINT64_MAX - 1 - x.base)->kind =
		off ? REGION_SHUT : REGION_ALONE;
}

static void add_overflow_bin(struct regions *r)
{
	struct profil_xform x;

	cr_assert_eq(0, xform_reduce(&x, &dialects[DIALECT_IRIX_USHORT], 0, 2, 2));
	r->overflow = r->n;
	regions_add(r, &x, (void *)(uintptr_t)(r->n + 1), UINT64_MAX);
}

/* A region of dialect @row near @base; @rank 0: the largest offset first, the overflow bin last. */
static void add_random(struct regions *r, int row, __u64 base, __u64 rank)
{
	static const unsigned int scales[] = { 3, 0x4000, 0x8000, 0xc001, 0x10000, 0x20000 };
	struct profil_xform x;
	__u64 offset = random_below(12) ? base + random_below(PCS) : 0;
	unsigned int scale = random_below(20) ? scales[random_below(6)] : 2;

	cr_assert_eq(0, xform_reduce(&x, &dialects[row], offset, scale, random_below(80)));
	if (!rank)
		rank = x.mul ? UINT64_MAX - 1 - x.base : UINT64_MAX;
	regions_add(r, &x, (void *)(uintptr_t)(r->n + 1), rank);
}

static void check_random(int row, __u64 base, int ranked)
{
	__cleanup(regions_freep) struct regions *r = regions_new();

	cr_assert(r);
	for (int round = 0; round < ROUNDS; round++) {
		r->n = 0;
		for (unsigned int n = random_below(round % 50 ? 12 : 60); n; n--)
			add_random(r, row, base, ranked ? 1 + random_below(8) : 0);
		regions_cut(r, &dialects[DIALECT_IRIX_USHORT]);
		check_pieces(r);
		for (__u64 pc = base; pc != base + 2 * PCS; pc++)
			check_pc(r, pc);
		check_pc(r, 0);
		check_pc(r, UINT64_MAX - 1);
	}
}

Test(regions, largest_offset_wins_then_the_next_smaller)
{
	check_random(DIALECT_GLIBC_SPROFIL_USHORT, 0x1000, 0);
}

Test(regions, of_irix_decide_alone_then_the_overflow_bin)
{
	__cleanup(regions_freep) struct regions *r = regions_new();

	cr_assert(r);
	for (int round = 0; round < ROUNDS; round++) {
		__u64 base = round % 7 ? 0x1000 : -(__u64)PCS;

		r->n = 0;
		r->overflow = REGIONS_MAX;
		for (unsigned int n = random_below(12); n; n--)
			add_random_irix(r, base);
		if (round % 3)
			add_overflow_bin(r);
		regions_cut(r, &dialects[DIALECT_IRIX_USHORT]);
		check_pieces(r);
		for (__u64 pc = base; pc != base + PCS && pc; pc++)
			check_pc(r, pc);
		check_pc(r, 0);
		check_pc(r, UINT64_MAX - 1);
	}
}

Test(regions, with_gaps_are_filled_by_the_overflow_bin)
{
	check_random(DIALECT_GLIBC_SPROFIL_UINT, 0, 0);
}

Test(regions, at_the_top_of_the_address_space_match_the_rule)
{
	check_random(DIALECT_GLIBC_SPROFIL_UINT, -(__u64)PCS, 0);
}

Test(regions, keep_the_order_of_the_caller)
{
	check_random(DIALECT_GLIBC, 0x1000, 1);
}

/* Each region lies inside the one before: the deepest nesting and the most pieces. */
Test(regions, nested_4096_deep)
{
	__cleanup(regions_freep) struct regions *r = regions_new();

	for (unsigned int i = 0; i < REGIONS_MAX; i++) {
		struct profil_xform x = { .base = i,
					  .span = 3ul * REGIONS_MAX - 2 * i,
					  .nbins = 1 };

		regions_add(r, &x, (void *)(uintptr_t)(i + 1), UINT64_MAX - 1 - i);
	}
	regions_cut(r, &dialects[DIALECT_IRIX_USHORT]);
	check_pieces(r);
	cr_expect_eq(2 * REGIONS_MAX - 1, r->m.start.nregions);
	for (__u64 pc = 0; pc < 3 * REGIONS_MAX; pc++)
		check_pc(r, pc);
}

Test(regions, without_bins_leave_no_piece)
{
	__cleanup(regions_freep) struct regions *r = regions_new();
	struct profil_xform none = { .base = 100 };

	regions_cut(r, &dialects[DIALECT_IRIX_USHORT]);
	cr_expect_eq(0, r->m.start.nregions);
	regions_add(r, &none, "", 0);
	regions_cut(r, &dialects[DIALECT_IRIX_USHORT]);
	cr_expect_eq(0, r->m.start.nregions);
}

/* A region hidden by another is still sent, because the daemon checks that its buffer is writable.
 */
Test(regions, hidden_by_others_are_still_checked)
{
	__cleanup(regions_freep) struct regions *r = regions_new();
	struct profil_xform x = { .base = 100, .span = 50, .nbins = 1 };

	regions_add(r, &x, "first", 0);
	regions_add(r, &x, "hidden", 1);
	regions_cut(r, &dialects[DIALECT_BSD]);
	cr_assert_eq(2, r->m.start.nregions);
	cr_expect_eq((uintptr_t) "hidden", r->m.start.region[0].addr);
	cr_expect_eq(1, r->m.start.region[1].owner);
	for (__u64 pc = 90; pc < 160; pc++)
		check_pc(r, pc);
	check_pc(r, 0);
	check_pc(r, UINT64_MAX);
}

/* AIX: a range may begin below the end of the previous one, which keeps its pcs. */
Test(regions, may_begin_past_their_base)
{
	__cleanup(regions_freep) struct regions *r = regions_new();
	struct profil_xform x = {
		.base = 100, .span = 50, .mul = 0x10000, .nbins = 50, .shift = 16
	};

	regions_add(r, &x, "", 0);
	r->region[0].lo = 120;
	regions_cut(r, &dialects[DIALECT_IRIX_USHORT]);
	cr_assert_eq(1, r->m.start.nregions);
	for (__u64 pc = 90; pc < 160; pc++)
		check_pc(r, pc);
	r->region[0].lo = 150;
	regions_cut(r, &dialects[DIALECT_IRIX_USHORT]);
	cr_expect_eq(0, r->m.start.nregions);
}
