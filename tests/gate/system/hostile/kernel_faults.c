/* kernel_faults.c - an unwritable buffer turns off its region or profile, and nothing else */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <criterion/parameterized.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/profil.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/lib/kernel_ticks.h"
#include "profil.h"

#define PAGE 4096
#define BYTES (LOOPS * sizeof(unsigned short))

/* No timer drains within the test: only calls of the client do. */
DAEMON_SUITE(kernel_faults, "--rate", TICKS_RATE, "--mirror-interval", "60000");

/* Makes a buffer, by its address, and makes it unwritable later. */
struct fault {
	const char *what;
	uintptr_t (*make)(void);
	int (*lose)(uintptr_t buf);
};

static uintptr_t pages(int flags, int fd)
{
	void *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);

	cr_assert(at != MAP_FAILED, "mmap: %s", strerror(errno));
	return (uintptr_t)at;
}

static uintptr_t private_pages(void)
{
	return pages(MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* One half lies in the first page, the other in the second. */
static uintptr_t across_pages(void)
{
	return private_pages() + PAGE - BYTES / 2;
}

static int file = -1;

static uintptr_t file_pages(void)
{
	FILE *f = tmpfile();

	cr_assert(f, "tmpfile: %s", strerror(errno));
	file = fileno(f);
	cr_assert_eq(ftruncate(file, 2 * PAGE), 0);
	return pages(MAP_SHARED, file);
}

static uintptr_t address_16(void)
{
	return 16;
}

/* The first half is the last memory that a process can have, the second lies beyond it. */
static uintptr_t end_of_user_space(void)
{
#if defined(__x86_64__)
	return 0x7ffffffff000 - BYTES / 2;
#else
	return 0xfffffffff000 - BYTES / 2;
#endif
}

static uintptr_t kernel_address(void)
{
	return (uintptr_t)0xffff888000000000;
}

static uintptr_t end_of_address_space(void)
{
	return (uintptr_t)0 - BYTES / 2;
}

static int unmap(uintptr_t buf)
{
	return munmap((void *)buf, 2 * PAGE);
}

static int unmap_second_page(uintptr_t buf)
{
	return munmap((void *)(buf + BYTES / 2), PAGE);
}

static int second_page_read_only(uintptr_t buf)
{
	return mprotect((void *)(buf + BYTES / 2), PAGE, PROT_READ);
}

static int make_read_only(uintptr_t buf)
{
	return mprotect((void *)buf, 2 * PAGE, PROT_READ);
}

static int forbid(uintptr_t buf)
{
	return mprotect((void *)buf, 2 * PAGE, PROT_NONE);
}

static int truncate_file(uintptr_t buf)
{
	return ftruncate(file, 0);
}

/* The mapping there may be read, and is a file's text. */
static int put_text_there(uintptr_t buf)
{
	__cleanup(fclosep) FILE *f = fopen("/proc/self/exe", "re");

	return f && mmap((void *)buf, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
			 fileno(f), 0) == (void *)buf
		       ? 0
		       : -1;
}

static int move_away(uintptr_t buf)
{
	return mremap((void *)buf, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		      (void *)private_pages()) == MAP_FAILED;
}

static const struct fault faults[] = {
	{ "unmapped", private_pages, unmap },
	{ "made read-only", private_pages, make_read_only },
	{ "made inaccessible", private_pages, forbid },
	{ "a truncated file", file_pages, truncate_file },
	{ "replaced by text", private_pages, put_text_there },
	{ "moved away", private_pages, move_away },
	{ "unmapped by half", across_pages, unmap_second_page },
	{ "read-only by half", across_pages, second_page_read_only },
	{ "at address 16", address_16, NULL },
	{ "at the end of user space", end_of_user_space, NULL },
	{ "in the kernel's memory", kernel_address, NULL },
	{ "around the end of all addresses", end_of_address_space, NULL },
};
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

static void sync_now(void)
{
	cr_assert_eq(profil_sync(), 0, "profil_sync: %s", strerror(errno));
}

/* Works in loop @n until the profile has a sample more; returns how many it has in all. */
static unsigned long long spin(unsigned int n)
{
	unsigned long long before = ticks_matched(&d);

	TICKS_SPIN(n, ticks_matched(&d) > before);
	return ticks_matched(&d);
}

/* The process keeps running, and its next profile counts. */
static void the_next_profile_counts(void)
{
	static unsigned short next[LOOPS];
	unsigned long long samples;

	cr_assert_eq(profil(next, BYTES, loop_at(0), TICKS_SCALE_16), 0);
	samples = spin(9);
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
	cr_expect_eq(next[9], samples, "the next profile has %u of %llu", next[9], samples);
}

ParameterizedTestParameters(kernel_faults, profil_ends_when_its_buffer_is_unwritable)
{
	static size_t which[FAULTS];

	for (size_t i = 0; i < FAULTS; i++)
		which[i] = i;
	return cr_make_param_array(size_t, which, FAULTS);
}

/* profil() of glibc and most others: an unwritable buffer ends the whole profile. */
ParameterizedTest(size_t *which, kernel_faults, profil_ends_when_its_buffer_is_unwritable)
{
	const struct fault *f = &faults[*which];
	uintptr_t buf = f->make();
	struct profil_msg_profile p;

	cr_log_info("a buffer that is %s", f->what);
	cr_assert_eq(profil((void *)buf, BYTES, loop_at(0), TICKS_SCALE_16), 0, "profil: %s",
		     strerror(errno));
	spin(LOOPS - 1);
	if (f->lose)
		cr_assert_eq(f->lose(buf), 0, "%s: %s", f->what, strerror(errno));
	sync_now();
	cr_expect(!ticks_list(&d, getpid(), &p), "%s: the profile is still listed", f->what);
	the_next_profile_counts();
}

ParameterizedTestParameters(kernel_faults, sprofil_loses_only_the_unwritable_region)
{
	static size_t which[FAULTS];

	for (size_t i = 0; i < FAULTS; i++)
		which[i] = i;
	return cr_make_param_array(size_t, which, FAULTS);
}

/*
 * Two regions at one address: the first counts as far as its buffer reaches, the second, with the
 * faulty buffer, what lies behind.
 */
static void start_two(unsigned short *good, uintptr_t bad)
{
	struct prof region[2] = {
		{ good, BYTES / 2, loop_at(0), TICKS_SCALE_16 },
		{ (void *)bad, BYTES, loop_at(0), TICKS_SCALE_16 },
	};

	cr_assert_eq(sprofil(region, 2, NULL, PROF_USHORT), 0, "sprofil: %s", strerror(errno));
}

/* sprofil() of IRIX and glibc: the region is turned off, the other one keeps counting. */
ParameterizedTest(size_t *which, kernel_faults, sprofil_loses_only_the_unwritable_region)
{
	static unsigned short good[LOOPS];
	const struct fault *f = &faults[*which];
	unsigned long long kept, before = 0, lost;
	uintptr_t bad = f->make();

	cr_log_info("a buffer that is %s", f->what);
	start_two(good, bad);
	kept = spin(1);
	if (f->lose) {
		before = spin(LOOPS - 1) - kept;
		sync_now();
		cr_expect_eq(((unsigned short *)bad)[LOOPS - 1], before);
		cr_assert_eq(f->lose(bad), 0, "%s: %s", f->what, strerror(errno));
	}
	lost = spin(LOOPS - 1) - kept - before;
	sync_now();
	cr_expect_eq(ticks_conserved(&d, kept + before), lost);
	cr_expect_eq(good[1], kept);

	kept = spin(1) - lost - before;
	loop_for(LOOPS - 1, 20000000); /* the region is off: unmatched */
	sync_now();
	cr_expect_eq(ticks_conserved(&d, kept + before), lost, "more is lost");
	cr_expect_eq(good[1], kept);
	the_next_profile_counts();
}
