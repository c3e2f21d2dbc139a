/* kernel_buffer.c - counts are added to the caller's buffer while the caller writes, unmaps or
 * protects it */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/profil.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/kernel_ticks.h"
#include "profil.h"

#define BUFFER_BYTES (LOOPS * sizeof(unsigned short))

/* No timer drains within the test: only calls of the client do. */
DAEMON_SUITE(kernel_buffer, "--rate", TICKS_RATE, "--mirror-interval", "60000");

static void profile_into(unsigned short *buf)
{
	cr_assert_eq(profil(buf, BUFFER_BYTES, loop_at(0), TICKS_SCALE_16), 0, "profil: %s",
		     strerror(errno));
}

static void profile_off(void)
{
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0, "sprofil: %s", strerror(errno));
}

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

static unsigned short *map_buffer(void)
{
	unsigned short *buf =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(buf != MAP_FAILED, "mmap: %s", strerror(errno));
	return buf;
}

/* Expects the profile to have ended, and the next one of the process to count. */
static void profile_is_over(void)
{
	static unsigned short next[LOOPS];
	struct profil_msg_profile p;
	unsigned long long samples;

	cr_assert(!ticks_list(&d, getpid(), &p), "the profile is still listed");
	profile_into(next);
	samples = spin(9);
	profile_off();
	cr_expect_eq(next[9], samples);
}

Test(kernel_buffer, sync_writes_the_counts_so_far)
{
	static unsigned short buf[LOOPS];
	unsigned long long samples;

	profile_into(buf);
	samples = spin(3);
	cr_assert_eq(buf[3], 0, "%u counts before the sync", buf[3]);
	sync_now();
	cr_expect_eq(buf[3], samples);
	profile_off();
}

Test(kernel_buffer, stop_writes_the_counts)
{
	static unsigned short buf[LOOPS];
	unsigned long long samples;

	profile_into(buf);
	samples = spin(3);
	profile_off();
	cr_expect_eq(buf[3], samples);
}

Test(kernel_buffer, a_stopped_buffer_is_never_written)
{
	static unsigned short buf[LOOPS], next[LOOPS];

	profile_into(buf);
	profile_off();
	profile_into(next);
	spin(3);
	sync_now();
	cr_assert_eq(buf[3], 0);
	cr_expect_gt(next[3], 0);
	profile_off();
}

Test(kernel_buffer, every_tick_is_binned_unmatched_or_lost)
{
	static unsigned short buf[LOOPS];
	unsigned long binned = 0;

	profile_into(buf);
	spin(3);
	loop_syscall(SYS_getpid, 0, 0, 0); /* lies after the last counter */
	sync_now();
	for (unsigned int i = 0; i < LOOPS; i++)
		binned += buf[i];
	ticks_conserved(&d, binned);
	profile_off();
}

Test(kernel_buffer, counts_are_added_to_what_the_caller_wrote)
{
	static unsigned short buf[LOOPS] = { [3] = 1000, [4] = 7 };
	unsigned long long first, both;

	profile_into(buf);
	first = spin(3);
	sync_now();
	cr_expect_eq(buf[3], 1000 + first);
	cr_assert_eq(buf[4], 7);

	memset(buf, 0, sizeof(buf));
	both = spin(3);
	profile_off();
	cr_expect_eq(buf[3], both - first);
	cr_assert_eq(buf[4], 0);
}

Test(kernel_buffer, a_counter_stays_at_65535)
{
	static unsigned short buf[LOOPS] = { [3] = 65530, [4] = 65535 };
	unsigned long long first, both;

	profile_into(buf);
	TICKS_SPIN(3, ticks_matched(&d) > 5);
	first = spin(4);
	sync_now();
	cr_assert_eq(buf[3], 65535);
	cr_assert_eq(buf[4], 65535);
	cr_assert_eq(buf[2], 0);
	cr_assert_eq(buf[5], 0);
	cr_expect_eq(ticks_conserved(&d, 5), first - 5,
		     "samples beyond 65535 are not counted as lost");

	buf[3] = 0; /* the caller resets its counter */
	both = spin(3);
	profile_off();
	cr_expect_eq(buf[3], both - first);
}

Test(kernel_buffer, an_unmapped_buffer_ends_the_profile_alone)
{
	unsigned short *buf = map_buffer();

	profile_into(buf);
	spin(3);
	cr_assert_eq(munmap(buf, 4096), 0);
	sync_now();
	profile_is_over();
}

Test(kernel_buffer, memory_mapped_in_place_of_the_buffer_is_never_written)
{
	unsigned short *buf = map_buffer(), *other;

	profile_into(buf);
	spin(3);
	cr_assert_eq(munmap(buf, 4096), 0);
	sync_now();
	other = mmap(buf, 4096, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	cr_assert_eq(other, buf, "mmap: %s", strerror(errno));
	profile_is_over();
	cr_assert_eq(other[3] | other[9], 0);
}

Test(kernel_buffer, a_read_only_buffer_ends_the_profile_and_keeps_its_counts)
{
	unsigned short *buf = map_buffer(), kept;

	profile_into(buf);
	spin(3);
	sync_now();
	kept = buf[3];
	cr_assert_gt(kept, 0);
	cr_assert_eq(mprotect(buf, 4096, PROT_READ), 0);
	spin(3);
	sync_now();
	cr_assert_eq(buf[3], kept);
	profile_is_over();
}

/* Two regions of sprofil(), of which the second loses its buffer. */
static void only_the_faulty_region_goes_off(int (*lose)(void *buf, size_t bytes))
{
	unsigned short *buf[2] = { map_buffer(), map_buffer() };
	struct prof region[2];
	unsigned long long first, second;

	for (unsigned int i = 0; i < 2; i++)
		region[i] = (struct prof){ .pr_base = buf[i],
					   .pr_size = BUFFER_BYTES / 2,
					   .pr_off = loop_at(i * LOOPS / 2),
					   .pr_scale = TICKS_SCALE_16 };
	cr_assert_eq(sprofil(region, 2, NULL, PROF_USHORT), 0, "sprofil: %s", strerror(errno));
	first = spin(0);
	second = spin(LOOPS / 2);
	cr_assert_eq(lose(buf[1], 4096), 0);
	sync_now();
	cr_expect_eq(buf[0][0], first);
	cr_expect_eq(ticks_conserved(&d, first), second - first);

	TICKS_SPIN(0, TICKS_SYNCED(buf[0][0]) > first);
	loop_for(LOOPS / 2, TICKS_SPELL_NS / 10); /* no event: it is off */
	sync_now();
	cr_expect_eq(ticks_conserved(&d, buf[0][0]), second - first, "the other region counts");
	profile_off();
	munmap(buf[0], 4096);
}

static int make_read_only(void *buf, size_t bytes)
{
	return mprotect(buf, bytes, PROT_READ);
}

Test(kernel_buffer, an_unmapped_buffer_turns_off_its_own_region_only)
{
	only_the_faulty_region_goes_off(munmap);
}

Test(kernel_buffer, a_read_only_buffer_turns_off_its_own_region_only)
{
	only_the_faulty_region_goes_off(make_read_only);
}

Test(kernel_buffer, without_a_daemon_a_start_fails_and_a_stop_does_not)
{
	static unsigned short buf[LOOPS];

	setenv("PROFIL_SOCKET", "/nonexistent/profil.sock", 1);
	errno = 0;
	cr_assert_eq(profil(buf, BUFFER_BYTES, loop_at(0), TICKS_SCALE_16), -1);
	cr_assert_eq(errno, ENOSYS, "errno is %s", strerror(errno));
	cr_assert_eq(profil_sync(), -1);
	cr_assert_eq(errno, ENOSYS, "errno is %s", strerror(errno));
	profile_off();
}
