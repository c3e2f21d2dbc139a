/* regions.c - tables of regions end to end: call, search in the kernel, buffers */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "libprofil/overlap.h"
#include "libprofil/xform.h"
#include "synthetic.h"
#include "tests/vectors/ways.h"

SYNTHETIC_SUITE(synth_regions, false);

/* Below all others, where programs are, on both sides of 2^63, and at the top. */
static const __u64 bases[] = { 0, 0x400000, (1ull << 63) - 200, -401ull };
#define PCS 400

#define TABLES 200 /* of each dialect and base */
#define ENTRIES 12
#define COUNTERS 64

static unsigned int random_below(unsigned int n)
{
	return (unsigned int)rand() % n;
}

/* One entry of a caller's table. */
struct entry {
	__u64 low;
	__u64 high; /* AIX */
	unsigned int scale;
	unsigned int bytes;
	bool off;
	bool overflow;
	struct profil_xform x;
	union {
		uint16_t u16[COUNTERS];
		uint32_t u32[COUNTERS];
	} buf;
	uint32_t want[COUNTERS];
};

static struct entry table[ENTRIES];
static unsigned int entries;

/* A dialect: how a table is made and given to the library, and which entry counts a pc. */
struct law {
	const char *name;
	enum dialect_name row;
	void (*make)(__u64 base);
	void (*start)(void);
	int (*stop)(void);
	const struct entry *(*entry)(__u64 pc);
};

static const struct dialect *now; /* the row of the dialect under test */

static __u32 bin_of(const struct entry *e, __u64 pc)
{
	return e->off || pc < e->low ? PROFIL_NO_BIN : profil_bin(&e->x, pc);
}

static void reduce(struct entry *e)
{
	e->off = xform_reduce(&e->x, now, e->low, e->scale, e->bytes) == XFORM_OFF;
	e->overflow = !e->off && !e->x.mul && !e->low;
}

/* Entries at random near @base, with one of @scales each. */
static void make_entries(__u64 base, unsigned int n, const unsigned int *scales,
			 unsigned int nscales)
{
	entries = n;
	for (unsigned int i = 0; i < n; i++) {
		struct entry *e = &table[i];

		memset(e, 0, sizeof(*e));
		e->low = base + random_below(PCS);
		e->scale = scales[random_below(nscales)];
		e->bytes = random_below(COUNTERS * 2);
		reduce(e);
	}
}

/* --- IRIX and glibc: sprofil ------------------------------------------------------------------ */

static void make_irix(__u64 base)
{
	static const unsigned int scales[] = { 0, 1, 2, 3, 0x8000, 0x10000, 0x20000 };

	make_entries(base + !base, 1 + random_below(ENTRIES - 1), scales, 7);
	if (random_below(3)) {
		struct entry *e = &table[entries++];

		*e = (struct entry){ .scale = 2, .bytes = 4 };
		reduce(e);
	}
}

static void make_glibc(__u64 base)
{
	static const unsigned int scales[] = { 0, 1, 3, 0x4000, 0x8000, 0xc001, 0x10000, 0x20000 };

	make_entries(base + !base, 1 + random_below(ENTRIES - 1), scales, 8);
	if (random_below(2)) {
		struct entry *e = &table[random_below(entries)];

		*e = (struct entry){ .scale = 2, .bytes = 4 };
		reduce(e);
	}
}

static unsigned int sprofil_flags(void)
{
	return now->width == 4 ? PROF_UINT : 0;
}

static void start_irix(void)
{
	struct prof_irix array[ENTRIES];

	for (unsigned int i = 0; i < entries; i++)
		array[i] = (struct prof_irix){ &table[i].buf, table[i].bytes, table[i].low,
					       table[i].scale };
	cr_assert_eq(sprofil_irix(array, (int)entries, NULL, sprofil_flags()), 0, "%s",
		     strerror(errno));
}

static void start_glibc(void)
{
	struct prof_glibc array[ENTRIES];

	for (unsigned int i = 0; i < entries; i++)
		array[i] = (struct prof_glibc){ &table[i].buf, table[i].bytes, table[i].low,
						table[i].scale };
	cr_assert_eq(sprofil(array, (int)entries, NULL, sprofil_flags()), 0, "%s", strerror(errno));
}

static int stop_irix(void)
{
	return profil_irix(NULL, 0, 0, 0);
}

static int stop_glibc(void)
{
	return sprofil(NULL, 0, NULL, 0);
}

/* Only the entry with the largest offset decides; where it has no counter, the overflow bin. */
static const struct entry *entry_irix(__u64 pc)
{
	const struct entry *best = NULL, *overflow = NULL;

	for (unsigned int i = 0; i < entries; i++) {
		const struct entry *e = &table[i];

		if (e->overflow)
			overflow = e;
		else if (e->low <= pc && (!best || e->low > best->low))
			best = e;
	}
	return !best || (!best->off && bin_of(best, pc) == PROFIL_NO_BIN) ? overflow : best;
}

/* Of the entries that have a counter, the one with the largest offset; the overflow bin is last. */
static const struct entry *entry_glibc(__u64 pc)
{
	const struct entry *best = NULL;

	for (unsigned int i = 0; i < entries; i++) {
		const struct entry *e = &table[i];

		if (bin_of(e, pc) == PROFIL_NO_BIN)
			continue;
		if (!best || (best->overflow && !e->overflow) ||
		    (best->overflow == e->overflow && e->low > best->low))
			best = e;
	}
	return best;
}

/* --- Darwin: profil, then add_profil ---------------------------------------------------------- */

static void make_darwin(__u64 base)
{
	static const unsigned int scales[] = { 1, 3, 0x8000, 0xc001, 0x10000 };

	make_entries(base, 1 + random_below(5), scales, 5);
	for (unsigned int i = 1; i < entries && !random_below(3); i++) /* hidden, or hides */
		table[i].low = table[0].low;
	for (unsigned int i = 0; i < entries; i++)
		reduce(&table[i]);
}

static void start_darwin(void)
{
	for (unsigned int i = 0; i < entries; i++) {
		struct entry *e = &table[i];
		int (*call)(char *, size_t, unsigned long, unsigned int) =
			i ? add_profil_darwin : profil_darwin;

		cr_assert_eq(call((char *)&e->buf, e->bytes, e->low, e->scale), 0, "%s",
			     strerror(errno));
	}
}

static int stop_darwin(void)
{
	return profil_darwin(NULL, 0, 0, 0);
}

/* profil's own first, then the newest added one. */
static const struct entry *entry_darwin(__u64 pc)
{
	if (bin_of(&table[0], pc) != PROFIL_NO_BIN)
		return &table[0];
	for (unsigned int i = entries; i-- > 1;) {
		if (bin_of(&table[i], pc) != PROFIL_NO_BIN)
			return &table[i];
	}
	return NULL;
}

/* --- AIX: an array of ranges ------------------------------------------------------------------ */

static void make_aix(__u64 base)
{
	static const unsigned int scales[] = { 0, 1, 2, 3, 0x4000, 0x7fff, 0x8000, 0xffff };
	__u64 high = base;

	make_entries(base, 1 + random_below(ENTRIES - 1), scales, 8);
	for (unsigned int i = 0; i < entries; i++) {
		struct entry *e = &table[i];

		high += 1 + random_below(PCS / ENTRIES);
		e->high = high;
		e->low = high - random_below(PCS / 4);
		if (e->low > high) /* below 0 */
			e->low = 0;
		reduce(e);
		xform_clip(&e->x, e->high);
	}
}

static void start_aix(void)
{
	struct prof_aix array[ENTRIES + 1] = { 0 };

	for (unsigned int i = 0; i < entries; i++)
		array[i] = (struct prof_aix){ (char *)table[i].low, (char *)table[i].high,
					      (unsigned short *)&table[i].buf, (int)table[i].bytes,
					      table[i].scale };
	cr_assert_eq(profil_aix(array, (unsigned int)-1, 0, 0), 0, "%s", strerror(errno));
}

static int stop_aix(void)
{
	struct prof_aix end = { .p_high = NULL };

	return profil_aix(&end, (unsigned int)-1, 0, 0);
}

/* The first entry that ends above the pc. */
static const struct entry *entry_aix(__u64 pc)
{
	for (unsigned int i = 0; i < entries; i++) {
		if (pc < table[i].high)
			return &table[i];
	}
	return NULL;
}

/* --- all of them ------------------------------------------------------------------------------ */

static void give(const struct law *law, __u64 pc)
{
	const struct entry *e = law->entry(pc);
	__u32 bin = e ? bin_of(e, pc) : PROFIL_NO_BIN, n = 1 + random_below(3);

	synthetic_hit(&s, getpid(), pc, n);
	if (bin != PROFIL_NO_BIN)
		table[e - table].want[bin] += n;
}

/* Each pc at which another entry may begin to count, its neighbours, and some between. */
static void give_all(const struct law *law, __u64 base)
{
	static const __u64 edges[] = { 0, 1, INT64_MAX, 1ull << 63, UINT64_MAX - 1, UINT64_MAX };

	for (unsigned int i = 0; i < entries; i++) {
		for (int k = -1; k <= 1; k++) {
			give(law, table[i].low + (__u64)k);
			give(law, table[i].x.base + table[i].x.span + (__u64)k);
		}
	}
	for (int i = 0; i < 30; i++)
		give(law, base + random_below(2 * PCS));
	for (unsigned int i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		give(law, edges[i]);
}

static void check_table(const struct law *law, __u64 base, unsigned int round)
{
	for (unsigned int i = 0; i < entries; i++) {
		const struct entry *e = &table[i];

		for (unsigned int bin = 0; bin < e->bytes / now->width; bin++) {
			uint32_t got = now->width == 2 ? e->buf.u16[bin] : e->buf.u32[bin];

			cr_assert(got == e->want[bin],
				  "%s, base %#llx, table %u: counter %u of entry %u (from %#llx, "
				  "scale %#x) is %u, not %u",
				  law->name, base, round, bin, i, e->low, e->scale, got,
				  e->want[bin]);
		}
	}
}

/* A table in which no entry is on starts no profile. */
static void check_random(const struct law *law, __u64 base, unsigned int round)
{
	law->make(base);
	law->start();
	if (synthetic_entry(&s, getpid()))
		give_all(law, base);
	cr_assert_eq(law->stop(), 0, "%s", strerror(errno));
	check_table(law, base, round);
}

static void check_law(const struct law *law)
{
	now = &dialects[law->row];
	for (unsigned int i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		for (unsigned int round = 0; round < TABLES; round++)
			check_random(law, bases[i], round);
	}
}

Test(synth_regions, of_irix_count_by_the_largest_offset_alone)
{
	check_law(&(struct law){ "IRIX, 16 bits", DIALECT_IRIX_USHORT, make_irix, start_irix,
				 stop_irix, entry_irix });
	check_law(&(struct law){ "IRIX, 32 bits", DIALECT_IRIX_UINT, make_irix, start_irix,
				 stop_irix, entry_irix });
}

Test(synth_regions, of_glibc_count_by_the_largest_offset_with_a_counter)
{
	check_law(&(struct law){ "glibc, 16 bits", DIALECT_GLIBC_SPROFIL_USHORT, make_glibc,
				 start_glibc, stop_glibc, entry_glibc });
	check_law(&(struct law){ "glibc, 32 bits", DIALECT_GLIBC_SPROFIL_UINT, make_glibc,
				 start_glibc, stop_glibc, entry_glibc });
}

Test(synth_regions, of_darwin_count_by_profil_then_by_the_newest)
{
	check_law(&(struct law){ "Darwin", DIALECT_BSD, make_darwin, start_darwin, stop_darwin,
				 entry_darwin });
}

Test(synth_regions, of_aix_count_by_the_first_that_ends_above)
{
	check_law(&(struct law){ "AIX", DIALECT_AIX, make_aix, start_aix, stop_aix, entry_aix });
}

/* One counter each, side by side; one sample more in each than in the one before. */
Test(synth_regions, of_4096_entries_have_each_sample)
{
	static struct prof_irix array[REGIONS_MAX];
	static uint16_t buf[REGIONS_MAX];

	for (unsigned int i = 0; i < REGIONS_MAX; i++)
		array[i] = (struct prof_irix){ &buf[i], 2, 0x400000 + 2 * i, 0x10000 };
	cr_assert_eq(sprofil_irix(array, REGIONS_MAX, NULL, 0), 0, "%s", strerror(errno));
	for (unsigned int i = 0; i < REGIONS_MAX; i++)
		synthetic_hit(&s, getpid(), 0x400000 + 2 * i + i % 2, i + 1);
	cr_assert_eq(stop_irix(), 0);
	for (unsigned int i = 0; i < REGIONS_MAX; i++)
		cr_expect_eq(buf[i], i + 1, "counter of entry %u is %u", i, buf[i]);
}

/*
 * Each entry lies inside the one before: the deepest nesting and 8191 pieces. Entry i has the bytes
 * from i to the end that it has by its size, and the next one hides all of it but its ends.
 */
Test(synth_regions, nested_4096_deep_have_each_sample)
{
	static struct prof_glibc array[REGIONS_MAX];
	static uint16_t buf[2 * REGIONS_MAX], want[2 * REGIONS_MAX];
	const __u64 base = 0x400000;

	/* Counter k of an entry is of the pcs base + 2k and 2k + 1: entries share one buffer. */
	for (unsigned int i = 0; i < REGIONS_MAX; i++)
		array[i] = (struct prof_glibc){ &buf[i], (2 * (REGIONS_MAX - i) - 1) * 2,
						base + 2 * i, 0x10000 };
	cr_assert_eq(sprofil(array, REGIONS_MAX, NULL, 0), 0, "%s", strerror(errno));
	for (unsigned int k = 0; k < 2 * REGIONS_MAX; k++) {
		synthetic_hit(&s, getpid(), base + 2 * k, k % 7 + 1);
		want[k] = k < 2 * REGIONS_MAX - 1 ? (uint16_t)(k % 7 + 1) : 0;
	}
	cr_assert_eq(stop_glibc(), 0);
	for (unsigned int k = 0; k < 2 * REGIONS_MAX; k++)
		cr_expect_eq(buf[k], want[k], "counter %u is %u, not %u", k, buf[k], want[k]);
}
