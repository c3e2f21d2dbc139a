/* kernel_sprofil_time.c - the counts of regions, rates, threads and system calls are their CPU time
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/profil.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/kernel_ticks.h"

#define FAST_FLAGS(flags) ((flags) | PROF_FAST)

DAEMON_SUITE(kernel_sprofil_time, "--fast-rate", TICKS_RATE);

static void profile_into(struct prof *region, int n, struct timeval *tick, unsigned int flags)
{
	cr_assert_eq(sprofil(region, n, tick, flags), 0, "sprofil: %s", strerror(errno));
}

static void profile_off(void)
{
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0, "sprofil: %s", strerror(errno));
}

/* A region for the loops from @first on, as many as @buf has counters. */
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

Test(kernel_sprofil_time, each_region_has_the_time_of_its_loop_and_the_overflow_bin_the_rest)
{
	static unsigned short low[8], high[8], rest[1];
	struct prof region[] = { loops_into(low, sizeof(low), 0, TICKS_SCALE_16),
				 loops_into(high, sizeof(high), 16, TICKS_SCALE_16),
				 rest_into(rest, sizeof(rest)) };
	struct loop_time first = { 0 }, second = { 0 }, other = { 0 };

	profile_into(region, 3, NULL, FAST_FLAGS(PROF_USHORT));
	loop_timed(&first, 5, TICKS_SPELL_NS);
	loop_timed(&second, 17, TICKS_SPELL_NS);
	loop_timed(&other, 12, TICKS_SPELL_NS);
	loop_timed(&other, 30, TICKS_SPELL_NS);
	profile_off();

	ticks_expect_spell(low[5], &first, TICKS_PERIOD_NS);
	ticks_expect_spell(high[1], &second, TICKS_PERIOD_NS);
	ticks_expect_spell(rest[0], &other, TICKS_PERIOD_NS);
	for (unsigned int i = 0; i < 8; i++) {
		cr_expect(i == 5 || low[i] == 0, "loop %u, which never ran, has %u", i, low[i]);
		cr_expect(i == 1 || high[i] == 0, "loop %u, which never ran, has %u", 16 + i,
			  high[i]);
	}
}

/* Profiles with @flags: sprofil() must return a tick of @period_ns, rounded to microseconds. */
static void tick_takes(unsigned int flags, unsigned long period_ns, uint64_t spell_ns)
{
	unsigned int buf[8] = { 0 };
	struct prof region[] = { loops_into(buf, sizeof(buf), 0, TICKS_SCALE_32) };
	struct timeval tick = { 77, 77 };
	struct loop_time time = { 0 };

	profile_into(region, 1, &tick, flags);
	cr_expect_eq(tick.tv_sec, 0);
	cr_expect_eq(tick.tv_usec, (suseconds_t)(period_ns + 500) / 1000,
		     "a tick of %lu ns is returned as %ld us", period_ns, (long)tick.tv_usec);
	loop_timed(&time, 2, spell_ns);
	profile_off();
	ticks_expect_spell(buf[2], &time, period_ns);
}

Test(kernel_sprofil_time, counts_ticks_of_the_returned_length)
{
	tick_takes(PROF_UINT, 10000000, 4 * TICKS_SPELL_NS);
	tick_takes(FAST_FLAGS(PROF_UINT), TICKS_PERIOD_NS, TICKS_SPELL_NS);
}

Test(kernel_sprofil_time, a_fast_tick_takes_a_millisecond_by_default)
{
	daemon_stop(&d);
	daemon_start(&d, NULL, NULL);
	tick_takes(FAST_FLAGS(PROF_UINT), 1000000, TICKS_SPELL_NS);
}

/* A thread's loop and the time that it ran. */
struct runner {
	unsigned int loop;
	struct loop_time time;
};

static void *run(void *arg)
{
	struct runner *r = arg;

	loop_timed(&r->time, r->loop, 2 * TICKS_SPELL_NS);
	return NULL;
}

Test(kernel_sprofil_time, each_thread_has_its_own_time)
{
	static unsigned int buf[LOOPS];
	struct prof region[] = { loops_into(buf, sizeof(buf), 0, TICKS_SCALE_32) };
	struct runner runner[2] = { { .loop = 6 }, { .loop = 7 } };
	pthread_t thread[2];

	profile_into(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, run, &runner[i]), 0);
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	profile_off();
	ticks_expect_spell(buf[6], &runner[0].time, TICKS_PERIOD_NS);
	ticks_expect_spell(buf[7], &runner[1].time, TICKS_PERIOD_NS);
}

/* Reads of /dev/zero spend all their time in the kernel. */
Test(kernel_sprofil_time, time_in_the_kernel_counts_at_the_system_call)
{
	static unsigned int buf[LOOPS + 1];
	static char page[1 << 20];
	struct prof region[] = { loops_into(buf, sizeof(buf), 0, TICKS_SCALE_32) };
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct loop_watch watch;
	uint64_t began;

	cr_assert(zero >= 0);
	profile_into(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	loop_watch_start(&watch);
	began = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	do {
		cr_assert_eq(loop_syscall(SYS_read, zero, (long)page, sizeof(page)), sizeof(page));
	} while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) - began < TICKS_SPELL_NS);
	loop_watch_stop(&watch);
	profile_off();
	close(zero);
	ticks_expect_spell(buf[LOOP_SYSCALL], &(struct loop_time){ watch.cpu_ns, watch.task_ns },
			   TICKS_PERIOD_NS);
}
