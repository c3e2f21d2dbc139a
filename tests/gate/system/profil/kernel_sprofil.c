/* kernel_sprofil.c - many histograms, rates and threads of one process, counted by the kernel */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/profil.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/sprofil_regions.h"
#include "profil.h"

DAEMON_SUITE(kernel_sprofil, "--fast-rate", TICKS_RATE);

Test(kernel_sprofil, each_region_counts_its_own_pcs_and_the_overflow_bin_the_rest)
{
	regions_apart(&d, &ticks_until_one);
}

/*
 * A START with one counter of @buf for each loop, of a region that begins at loop @first. libprofil
 * never sends a first region that begins above its own bin 0.
 */
static struct profil_msg_start *loops_from(unsigned int first, const void *cookie,
					   unsigned short buf[LOOPS])
{
	struct profil_msg_start *m = calloc(1, sizeof(*m) + sizeof(m->region[0]));

	cr_assert(m);
	wire_header(&m->h, PROFIL_MSG_START, sizeof(*m), sizeof(m->region[0]), 1);
	m->cookie_addr = (unsigned long)cookie;
	m->flags = PROFIL_START_FAST;
	m->width = 2;
	m->cap = 65535;
	m->nregions = 1;
	m->region[0] = (struct profil_msg_region){
		.lo = loop_at(first),
		.x = { .base = loop_at(0),
		       .span = LOOPS * LOOP_BYTES,
		       .mul = 1,
		       .shift = 6,
		       .nbins = LOOPS },
		.addr = (unsigned long)buf,
	};
	_Static_assert(LOOP_BYTES == 1 << 6, "the shift is that of LOOP_BYTES");
	return m;
}

Test(kernel_sprofil, a_region_does_not_count_pcs_before_it)
{
	static unsigned short buf[LOOPS];
	struct profil_msg_hello hello, last;
	__cleanup(closep) int sock = client_open(&d, &hello), stop = -1;
	__cleanup(freep) struct profil_msg_start *m = loops_from(8, hello.cookie, buf);
	struct profil_msg_self end = { .cookie_addr = (unsigned long)last.cookie };
	struct profil_msg_profile before, p;

	cr_assert_eq(client_ask(sock, &m->h, NULL), 0);
	cr_assert(ticks_list(&d, getpid(), &before));
	TICKS_SPIN(3, ticks_list(&d, getpid(), &p) && p.unmatched > before.unmatched + 5);
	TICKS_SPIN(12, *(volatile unsigned short *)&buf[12]);
	/* The daemon closes the connection of a client that is silent for 10 s. */
	stop = client_open(&d, &last);
	wire_header(&end.h, PROFIL_MSG_STOP, sizeof(end), 0, 0);
	cr_assert_eq(client_ask(stop, &end.h, NULL), 0);
	cr_expect_eq(buf[3], 0, "loop 3, before the region, has %u ticks", buf[3]);
}

Test(kernel_sprofil, counters_of_32_bits_count_beyond_65535)
{
	static unsigned int wide[8] = { [2] = 65530, [3] = 0xfffffffa };
	struct prof region[] = { loops_into(wide, sizeof(wide), 0, TICKS_SCALE_32) };
	unsigned long long before, all;

	regions_profile(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	TICKS_SPIN(2, (before = ticks_matched(&d)) > 5);
	TICKS_SPIN(3, (all = ticks_matched(&d)) > before + 5);
	cr_assert_eq(profil_sync(), 0);
	cr_expect_eq(wide[2], 65530 + before);
	cr_expect_eq(ticks_conserved(&d, before + 5), all - before - 5);
	regions_off();
	cr_assert_eq(wide[3], 0xffffffff, "the saturated counter became %u", wide[3]);
	cr_assert_eq(wide[1], 0);
	cr_assert_eq(wide[4], 0);
}

Test(kernel_sprofil, returns_the_length_of_a_tick)
{
	regions_tick_length(&ticks_until_one, &ticks_until_one);
}

Test(kernel_sprofil, a_fast_tick_takes_a_millisecond_by_default)
{
	regions_default_tick(&d, &ticks_until_one);
}

Test(kernel_sprofil, a_second_call_replaces_the_first)
{
	static unsigned int first[LOOPS], second[LOOPS];
	struct prof region[] = { loops_into(first, sizeof(first), 0, TICKS_SCALE_32) };
	unsigned long long before;

	regions_profile(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	TICKS_SPIN(2, (before = ticks_matched(&d)) > 0);
	region[0].pr_base = second;
	regions_profile(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	cr_expect_eq(first[2], before);
	TICKS_SPIN(2, TICKS_SYNCED(second[2]));
	cr_expect_eq(ticks_conserved(&d, second[2]), 0);
	regions_off();
	cr_expect_eq(first[2], before);
}

Test(kernel_sprofil, a_failed_call_leaves_the_profile_on)
{
	static unsigned int first[LOOPS];
	struct prof region[] = { loops_into(first, sizeof(first), 0, TICKS_SCALE_32) };
	unsigned long long before;

	regions_profile(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	TICKS_SPIN(2, (before = ticks_matched(&d)) > 0);
	cr_assert_eq(sprofil(region, 4097, NULL, PROF_UINT), -1);
	cr_assert_eq(errno, E2BIG);
	cr_assert_eq(sprofil((struct prof *)8, 1, NULL, PROF_UINT), -1);
	cr_assert_eq(errno, EFAULT);
	TICKS_SPIN(2, TICKS_SYNCED(first[2]) > before);
	cr_expect_eq(ticks_conserved(&d, first[2]), 0);
	regions_off();
}

Test(kernel_sprofil, every_thread_counts)
{
	regions_of_two_threads(&d, &ticks_until_one);
}

Test(kernel_sprofil, time_in_the_kernel_counts_at_the_system_call)
{
	regions_of_system_call(&d, &ticks_until_one);
}

/* The daemon drains every 100 ms without a request. */
Test(kernel_sprofil, counts_arrive_without_a_sync)
{
	static unsigned int buf[LOOPS];
	struct prof region[] = { loops_into(buf, sizeof(buf), 0, TICKS_SCALE_32) };

	regions_profile(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	TICKS_SPIN(1, *(volatile unsigned int *)&buf[1]);
	regions_off();
}
