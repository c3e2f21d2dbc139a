/* sprofil_regions.c - profiles of many regions, and what their counts must be */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profil.h"
#include "sprofil_regions.h"

void regions_profile(struct prof *region, int n, struct timeval *tick, unsigned int flags)
{
	cr_assert_eq(sprofil(region, n, tick, flags), 0, "sprofil: %s", strerror(errno));
}

void regions_off(void)
{
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0, "sprofil: %s", strerror(errno));
}

void regions_apart(const struct daemon *d, const struct ticks_way *way)
{
	static unsigned short low[8], high[8], rest[1];
	struct prof region[] = {
		loops_into(low, sizeof(low), 0, TICKS_SCALE_16),
		loops_into(high, sizeof(high), 16, TICKS_SCALE_16),
		{ .pr_base = rest, .pr_size = sizeof(rest), .pr_off = 0, .pr_scale = 2 },
	};
	struct loop_time first = { 0 }, second = { 0 }, other = { 0 };
	unsigned long long matched;
	unsigned short before;

	regions_profile(region, 3, NULL, FAST_FLAGS(PROF_USHORT));
	TICKS_WORK(way->spell_ns, &first, 5, TICKS_SYNCED(low[5]));
	TICKS_WORK(way->spell_ns, &second, 17, TICKS_SYNCED(high[1]));
	/* Others than these two loops', of which the overflow bin has samples anyway. */
	cr_expect_eq(profil_sync(), 0);
	before = rest[0];
	TICKS_WORK(way->spell_ns, &other, 12, TICKS_SYNCED(rest[0]) && rest[0] > before);
	TICKS_WORK(way->spell_ns, &other, 30, TICKS_SYNCED(rest[0]) && rest[0] > before);
	/* The overflow bin has samples of this code, too: LIST has no fewer than were written
	 * before it, and no more than after it. */
	cr_expect_eq(profil_sync(), 0);
	before = rest[0];
	matched = ticks_matched(d);
	cr_expect_eq(profil_sync(), 0);
	cr_expect_geq(matched, low[5] + high[1] + before);
	cr_expect_leq(matched, low[5] + high[1] + rest[0]);
	regions_off();

	way->judge(low[5], &first, TICKS_PERIOD_NS, "the first region");
	way->judge(high[1], &second, TICKS_PERIOD_NS, "the second region");
	way->judge(rest[0], &other, TICKS_PERIOD_NS, "the overflow bin");
	for (unsigned int i = 0; i < 8; i++) {
		cr_expect(i == 5 || low[i] == 0, "loop %u, which never ran, has %u", i, low[i]);
		cr_expect(i == 1 || high[i] == 0, "loop %u, which never ran, has %u", 16 + i,
			  high[i]);
	}
}

/* Profiles with @flags: sprofil() must return a tick of @period_ns, rounded to microseconds. */
static void tick_takes(unsigned int flags, unsigned long period_ns, const struct ticks_way *way)
{
	unsigned int buf[8] = { 0 };
	struct prof region[] = { loops_into(buf, sizeof(buf), 0, TICKS_SCALE_32) };
	struct timeval tick = { 77, 77 };
	struct loop_time time = { 0 };

	regions_profile(region, 1, &tick, flags);
	cr_expect_eq(tick.tv_sec, 0);
	cr_expect_eq(tick.tv_usec, (suseconds_t)(period_ns + 500) / 1000,
		     "a tick of %lu ns is returned as %ld us", period_ns, (long)tick.tv_usec);
	TICKS_WORK(way->spell_ns, &time, 2, TICKS_SYNCED(buf[2]));
	regions_off();
	way->judge(buf[2], &time, period_ns, "a loop");
}

void regions_tick_length(const struct ticks_way *slow, const struct ticks_way *fast)
{
	tick_takes(PROF_UINT, 10000000, slow);
	tick_takes(FAST_FLAGS(PROF_UINT), TICKS_PERIOD_NS, fast);
}

void regions_default_tick(struct daemon *d, const struct ticks_way *way)
{
	daemon_stop(d);
	daemon_start(d, NULL, NULL);
	tick_takes(FAST_FLAGS(PROF_UINT), 1000000, way);
}

/* A thread's loop, its counter, and the time that it ran. */
struct runner {
	const struct ticks_way *way;
	unsigned int loop;
	const unsigned int *counter;
	struct loop_time time;
	bool came;
};

static void *run(void *arg)
{
	struct runner *r = arg;

	r->came = TICKS_WORKED(r->way->spell_ns, &r->time, r->loop, TICKS_SYNCED(*r->counter));
	return NULL;
}

void regions_of_two_threads(const struct daemon *d, const struct ticks_way *way)
{
	static unsigned int buf[LOOPS];
	struct prof region[] = { loops_into(buf, sizeof(buf), 0, TICKS_SCALE_32) };
	struct runner runner[2] = { { .way = way, .loop = 6, .counter = &buf[6] },
				    { .way = way, .loop = 7, .counter = &buf[7] } };
	pthread_t thread[2];

	regions_profile(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, run, &runner[i]), 0);
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	cr_assert_eq(profil_sync(), 0);
	cr_expect_eq(ticks_conserved(d, buf[6] + buf[7]), 0);
	regions_off();
	cr_expect(runner[0].came && runner[1].came, "a thread has no sample");
	for (unsigned int i = 0; i < 2; i++)
		way->judge(*runner[i].counter, &runner[i].time, TICKS_PERIOD_NS, "a thread");
}

void regions_of_system_call(const struct daemon *d, const struct ticks_way *way)
{
	static unsigned int buf[LOOPS + 1];
	static char page[1 << 20];
	struct prof region[] = { loops_into(buf, sizeof(buf), 0, TICKS_SCALE_32) };
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct loop_watch watch;
	uint64_t began;

	cr_assert(zero >= 0);
	regions_profile(region, 1, NULL, FAST_FLAGS(PROF_UINT));
	loop_watch_start(&watch);
	began = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	do {
		cr_assert_eq(loop_syscall(SYS_read, zero, (long)page, sizeof(page)), sizeof(page));
	} while (way->spell_ns ? cpu_ns(CLOCK_THREAD_CPUTIME_ID) - began < way->spell_ns
			       : !TICKS_SYNCED(buf[LOOP_SYSCALL]));
	loop_watch_stop(&watch);
	cr_assert_eq(profil_sync(), 0);
	cr_expect_eq(ticks_conserved(d, buf[LOOP_SYSCALL]), 0);
	regions_off();
	close(zero);
	way->judge(buf[LOOP_SYSCALL], &(struct loop_time){ watch.cpu_ns, watch.task_ns },
		   TICKS_PERIOD_NS, "a system call");
}
