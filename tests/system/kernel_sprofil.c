/* kernel_sprofil.c - many histograms, rates and threads of one process, counted by the kernel */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/profil.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon.h"
#include "profil.h"
#include "../programs/loops.h"

#define SPELL_NS 250000000ull
#define FAST_NS 1000000
#define FAST_FLAGS(flags) ((flags) | PROF_FAST)
/* glibc's formula makes them one counter a loop. */
#define USHORT_SCALE (2 * 65536 / LOOP_BYTES)
#define UINT_SCALE (4 * 65536 / LOOP_BYTES)

static struct daemon d;

static void start(void)
{
	daemon_start(&d, NULL, NULL); /* at 100 Hz, and 1000 Hz for who asks for PROF_FAST */
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_sprofil, .init = start, .fini = stop);

static void profile_into(struct prof *region, int n, struct timeval *tick, unsigned int flags)
{
	cr_assert_eq(sprofil(region, n, tick, flags), 0, "sprofil: %s", strerror(errno));
}

static void profile_off(void)
{
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0, "sprofil: %s", strerror(errno));
}

/*
 * 250 ticks, in 80 or so slices where the machine is busy, have a standard deviation of at most 5:
 * 10 % and 10 ticks are seven of those.
 */
static void expect_ticks(unsigned long ticks, uint64_t spent_ns, unsigned long period_ns)
{
	double due = (double)spent_ns / (double)period_ns;

	cr_assert_float_eq((double)ticks, due, due * 0.1 + 10,
			   "%lu ticks counted in %.0f ticks' worth of CPU time", ticks, due);
}

/* The @n loops from @first on, into @buf. */
static struct prof loops_into(void *buf, size_t bytes, unsigned int first, unsigned long scale)
{
	return (struct prof){
		.pr_base = buf, .pr_size = bytes, .pr_off = loop_at(first), .pr_scale = scale
	};
}

static struct prof rest_into(void *buf, size_t bytes)
{
	return (struct prof){ .pr_base = buf, .pr_size = bytes, .pr_off = 0, .pr_scale = 2 };
}

Test(kernel_sprofil, each_region_counts_its_own_and_the_overflow_bin_the_rest)
{
	static unsigned short low[8], high[8], rest[1];
	struct prof region[] = { loops_into(low, sizeof(low), 0, USHORT_SCALE),
				 loops_into(high, sizeof(high), 16, USHORT_SCALE),
				 rest_into(rest, sizeof(rest)) };
	uint64_t first, second, between, above;

	profile_into(region, 3, NULL, FAST_FLAGS(PROF_USHORT));
	first = loop_for(5, SPELL_NS);
	second = loop_for(17, SPELL_NS);
	between = loop_for(12, SPELL_NS);
	above = loop_for(30, SPELL_NS);
	profile_off();

	expect_ticks(low[5], first, FAST_NS);
	expect_ticks(high[1], second, FAST_NS);
	expect_ticks(rest[0], between + above, FAST_NS);
	for (unsigned int i = 0; i < 8; i++) {
		cr_expect(i == 5 || low[i] == 0, "loop %u, which never ran, has %u", i, low[i]);
		cr_expect(i == 1 || high[i] == 0, "loop %u, which never ran, has %u", 16 + i,
			  high[i]);
	}
}

Test(kernel_sprofil, counters_of_32_bits_go_on_where_those_of_16_stay)
{
	static unsigned int wide[8] = { [2] = 65530, [3] = 0xfffffffa };
	struct prof region[] = { loops_into(wide, sizeof(wide), 0, UINT_SCALE) };
	uint64_t ns;

	profile_into(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	ns = loop_for(2, SPELL_NS);
	loop_for(3, SPELL_NS);
	profile_off();
	expect_ticks(wide[2] - 65530, ns, FAST_NS);
	cr_assert_eq(wide[3], 0xffffffff, "a full counter became %u", wide[3]);
	cr_assert_eq(wide[1], 0);
	cr_assert_eq(wide[4], 0);
}

Test(kernel_sprofil, tells_the_true_time_of_a_tick)
{
	static unsigned int slow[8], fast[8];
	struct prof region[] = { loops_into(slow, sizeof(slow), 0, UINT_SCALE) };
	struct timeval tick = { 77, 77 };
	uint64_t ns;

	profile_into(region, 1, &tick, PROF_UINT);
	cr_assert_eq(tick.tv_sec, 0);
	cr_assert_eq(tick.tv_usec, 10000);
	ns = loop_for(2, 4 * SPELL_NS);
	profile_off();
	expect_ticks(slow[2], ns, 10000000);

	region[0].pr_base = fast;
	profile_into(region, 1, &tick, FAST_FLAGS(PROF_UINT));
	cr_assert_eq(tick.tv_sec, 0);
	cr_assert_eq(tick.tv_usec, 1000);
	ns = loop_for(2, SPELL_NS);
	profile_off();
	expect_ticks(fast[2], ns, FAST_NS);
}

Test(kernel_sprofil, a_second_call_takes_the_firsts_place)
{
	static unsigned int first[LOOPS], second[LOOPS];
	struct prof region[] = { loops_into(first, sizeof(first), 0, UINT_SCALE) };
	uint64_t before, after;

	profile_into(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	before = loop_for(2, SPELL_NS);
	region[0].pr_base = second;
	profile_into(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	after = loop_for(2, 2 * SPELL_NS);
	profile_off();
	expect_ticks(first[2], before, FAST_NS);
	expect_ticks(second[2], after, FAST_NS);
}

Test(kernel_sprofil, a_call_that_fails_leaves_the_first_alone)
{
	static unsigned int first[LOOPS];
	struct prof region[] = { loops_into(first, sizeof(first), 0, UINT_SCALE) };
	uint64_t ns;

	profile_into(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	ns = loop_for(2, SPELL_NS);
	cr_assert_eq(sprofil(region, 4097, NULL, PROF_UINT), -1);
	cr_assert_eq(errno, E2BIG);
	cr_assert_eq(sprofil((struct prof *)8, 1, NULL, PROF_UINT), -1);
	cr_assert_eq(errno, EFAULT);
	ns += loop_for(2, SPELL_NS);
	profile_off();
	expect_ticks(first[2], ns, FAST_NS);
}

/* A thread's loop, and how long it ran. */
struct runner {
	unsigned int loop;
	uint64_t ns;
};

static void *run(void *arg)
{
	struct runner *r = arg;

	r->ns = loop_for(r->loop, 2 * SPELL_NS);
	return NULL;
}

Test(kernel_sprofil, threads_count_alike_whether_there_before_or_not)
{
	static unsigned int buf[LOOPS];
	struct prof region[] = { loops_into(buf, sizeof(buf), 0, UINT_SCALE) };
	struct runner runner[2] = { { .loop = 6 }, { .loop = 7 } };
	pthread_t thread[2];

	profile_into(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, run, &runner[i]), 0);
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	profile_off();
	expect_ticks(buf[6], runner[0].ns, FAST_NS);
	expect_ticks(buf[7], runner[1].ns, FAST_NS);
}

/* Reads from a device that makes its bytes in the kernel: all the time is spent in there. */
Test(kernel_sprofil, time_in_the_kernel_counts_where_the_program_left_for_it)
{
	static unsigned int buf[LOOPS + 1];
	static char page[1 << 20];
	struct prof region[] = { loops_into(buf, sizeof(buf), 0, UINT_SCALE) };
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	uint64_t began, ns;

	cr_assert(zero >= 0);
	profile_into(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	began = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	do {
		cr_assert_eq(loop_syscall(SYS_read, zero, (long)page, sizeof(page)), sizeof(page));
		ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - began;
	} while (ns < SPELL_NS);
	profile_off();
	close(zero);
	expect_ticks(buf[LOOP_SYSCALL], ns, FAST_NS);
}

/* Nobody asks for the counts: the mirror brings them, in an interval of 100 ms. */
Test(kernel_sprofil, counts_arrive_by_themselves)
{
	static unsigned int buf[LOOPS];
	struct prof region[] = { loops_into(buf, sizeof(buf), 0, UINT_SCALE) };
	uint64_t ns = 0;

	profile_into(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	while (!*(volatile unsigned int *)&buf[1] && ns < 40 * SPELL_NS)
		ns += loop_for(1, 1);
	cr_assert(buf[1], "nothing arrived in %llu ms of CPU time",
		  (unsigned long long)ns / 1000000);
	profile_off();
}
