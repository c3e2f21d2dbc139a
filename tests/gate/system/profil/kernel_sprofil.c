/* kernel_sprofil.c - many histograms, rates and threads of one process, counted by the kernel */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/profil.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "tests/lib/kernel_ticks.h"
#include "profil.h"

DAEMON_SUITE(kernel_sprofil, "--fast-rate", TICKS_RATE);

#define FAST_FLAGS(flags) ((flags) | PROF_FAST)

/* A region for the caller's loops from @first on, as many as @buf has counters. */
static struct prof loops_into(void *buf, size_t bytes, unsigned int first, unsigned long scale)
{
	return (struct prof){
		.pr_base = buf, .pr_size = bytes, .pr_off = loop_at(first), .pr_scale = scale
	};
}

static void regions_profile(struct prof *region, int n, struct timeval *tick, unsigned int flags)
{
	cr_assert_eq(sprofil(region, n, tick, flags), 0, "sprofil: %s", strerror(errno));
}

static void regions_off(void)
{
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0, "sprofil: %s", strerror(errno));
}

Test(kernel_sprofil, each_region_counts_its_own_pcs_and_the_overflow_bin_the_rest)
{
	static unsigned short low[8], high[8], rest[1];
	struct prof region[] = {
		loops_into(low, sizeof(low), 0, TICKS_SCALE_16),
		loops_into(high, sizeof(high), 16, TICKS_SCALE_16),
		{ .pr_base = rest, .pr_size = sizeof(rest), .pr_off = 0, .pr_scale = 2 },
	};
	unsigned long long matched;
	unsigned short before;

	regions_profile(region, 3, NULL, FAST_FLAGS(PROF_USHORT));
	TICKS_SPIN(5, TICKS_SYNCED(low[5]));
	TICKS_SPIN(17, TICKS_SYNCED(high[1]));
	/* Others than these two loops', of which the overflow bin has samples anyway. */
	cr_expect_eq(profil_sync(), 0);
	before = rest[0];
	TICKS_SPIN(12, TICKS_SYNCED(rest[0]) && rest[0] > before);
	TICKS_SPIN(30, TICKS_SYNCED(rest[0]) && rest[0] > before);
	/* The overflow bin has samples of this code, too: LIST has no fewer than were written
	 * before it, and no more than after it. */
	cr_expect_eq(profil_sync(), 0);
	before = rest[0];
	matched = ticks_matched(&d);
	cr_expect_eq(profil_sync(), 0);
	cr_expect_geq(matched, low[5] + high[1] + before);
	cr_expect_leq(matched, low[5] + high[1] + rest[0]);
	regions_off();

	for (unsigned int i = 0; i < 8; i++) {
		cr_expect(i == 5 || low[i] == 0, "loop %u, which never ran, has %u", i, low[i]);
		cr_expect(i == 1 || high[i] == 0, "loop %u, which never ran, has %u", 16 + i,
			  high[i]);
	}
}

/* Profiles with @flags: sprofil() must return a tick of @period_ns, rounded to microseconds. */
static void tick_takes(unsigned int flags, unsigned long period_ns)
{
	unsigned int buf[8] = { 0 };
	struct prof region[] = { loops_into(buf, sizeof(buf), 0, TICKS_SCALE_32) };
	struct timeval tick = { 77, 77 };

	regions_profile(region, 1, &tick, flags);
	cr_expect_eq(tick.tv_sec, 0);
	cr_expect_eq(tick.tv_usec, (suseconds_t)(period_ns + 500) / 1000,
		     "a tick of %lu ns is returned as %ld us", period_ns, (long)tick.tv_usec);
	TICKS_SPIN(2, TICKS_SYNCED(buf[2]));
	regions_off();
}

Test(kernel_sprofil, returns_the_length_of_a_tick)
{
	tick_takes(PROF_UINT, 10000000);
	tick_takes(FAST_FLAGS(PROF_UINT), TICKS_PERIOD_NS);
}

Test(kernel_sprofil, a_fast_tick_takes_a_millisecond_by_default)
{
	daemon_stop(&d);
	daemon_start(&d, NULL, NULL);
	tick_takes(FAST_FLAGS(PROF_UINT), 1000000);
}

/* A thread's loop and its counter. */
struct runner {
	unsigned int loop;
	const unsigned int *counter;
	bool came;
};

static void *run(void *arg)
{
	struct runner *r = arg;

	r->came = TICKS_SPUN(r->loop, TICKS_SYNCED(*r->counter));
	return NULL;
}

Test(kernel_sprofil, every_thread_counts)
{
	static unsigned int buf[LOOPS];
	struct prof region[] = { loops_into(buf, sizeof(buf), 0, TICKS_SCALE_32) };
	struct runner runner[2] = { { .loop = 6, .counter = &buf[6] },
				    { .loop = 7, .counter = &buf[7] } };
	pthread_t thread[2];

	regions_profile(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, run, &runner[i]), 0);
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	cr_assert_eq(profil_sync(), 0);
	cr_expect_eq(ticks_conserved(&d, buf[6] + buf[7]), 0);
	regions_off();
	cr_expect(runner[0].came && runner[1].came, "a thread has no sample");
}

Test(kernel_sprofil, time_in_the_kernel_counts_at_the_system_call)
{
	static unsigned int buf[LOOPS + 1];
	static char page[1 << 20];
	struct prof region[] = { loops_into(buf, sizeof(buf), 0, TICKS_SCALE_32) };
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	cr_assert(zero >= 0);
	regions_profile(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	do {
		cr_assert_eq(loop_syscall(SYS_read, zero, (long)page, sizeof(page)), sizeof(page));
	} while (!TICKS_SYNCED(buf[LOOP_SYSCALL]));
	cr_assert_eq(profil_sync(), 0);
	cr_expect_eq(ticks_conserved(&d, buf[LOOP_SYSCALL]), 0);
	regions_off();
	close(zero);
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

/* The daemon drains every 100 ms without a request. */
Test(kernel_sprofil, counts_arrive_without_a_sync)
{
	static unsigned int buf[LOOPS];
	struct prof region[] = { loops_into(buf, sizeof(buf), 0, TICKS_SCALE_32) };

	regions_profile(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	TICKS_SPIN(1, *(volatile unsigned int *)&buf[1]);
	regions_off();
}
