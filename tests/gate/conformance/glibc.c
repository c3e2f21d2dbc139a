/* glibc.c - profil and sprofil by glibc's manual and headers, without its defects */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/profil.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "facts.h"

/*
 * These facts also hold with samples of the kernel, so that libc's own profil can be tested by
 * them: each uses hot(), which always has some.
 */
#define COUNTERS (HOT_BYTES / 2)
#define IN_HOT ((size_t)hot)
#define ONE_TO_ONE 0x10000

static unsigned short buf[COUNTERS + 4], other[COUNTERS + 4], left[4];

/* <unistd.h> declares the buffer nonnull, but NULL stops a profile: hides it from the compiler. */
static int stop(void)
{
	int (*volatile call)(unsigned short *, size_t, size_t, unsigned int) = profil;

	return call(NULL, 0, 0, 0);
}

static struct prof region(void *base, size_t size, size_t off, unsigned long scale)
{
	struct prof p = { base, size, off, scale };

	return p;
}

static int counts_where_the_time_is_spent(void)
{
	errno = 77;
	WANT(profil(buf, HOT_BYTES, IN_HOT, ONE_TO_ONE) == 0);
	WANT(errno == 77);
	burn();
	WANT(stop() == 0 && errno == 77);
	WANT(sum(buf, COUNTERS) >= 20);
	WANT(sum(buf + COUNTERS, 4) == 0);
	return 1;
}

static int adds_to_what_is_there(void)
{
	for (int i = 0; i < COUNTERS; i++)
		buf[i] = 1000;
	WANT(profil(buf, HOT_BYTES, IN_HOT, ONE_TO_ONE) == 0);
	burn();
	WANT(stop() == 0);
	for (int i = 0; i < COUNTERS; i++)
		WANT(buf[i] >= 1000);
	WANT(sum(buf, COUNTERS) > 1000 * COUNTERS);
	return 1;
}

static int counts_nothing_once_stopped(void)
{
	unsigned long before;

	WANT(stop() == 0);
	WANT(profil(buf, HOT_BYTES, IN_HOT, ONE_TO_ONE) == 0);
	burn();
	WANT(stop() == 0);
	before = sum(buf, COUNTERS);
	burn();
	WANT(sum(buf, COUNTERS) == before);
	WANT(stop() == 0);
	return 1;
}

static int scale_0_stops(void)
{
	unsigned long before;

	WANT(profil(buf, HOT_BYTES, IN_HOT, ONE_TO_ONE) == 0);
	burn();
	WANT(profil(buf, HOT_BYTES, 0, 0) == 0);
	before = sum(buf, COUNTERS);
	burn();
	WANT(sum(buf, COUNTERS) == before && before > 0);
	return 1;
}

static int another_call_replaces_it(void)
{
	unsigned long before;

	WANT(profil(buf, HOT_BYTES, IN_HOT, ONE_TO_ONE) == 0);
	burn();
	WANT(profil(other, HOT_BYTES, IN_HOT, ONE_TO_ONE) == 0);
	before = sum(buf, COUNTERS);
	burn();
	WANT(stop() == 0);
	WANT(sum(buf, COUNTERS) == before && before > 0 && sum(other, COUNTERS) > 0);
	return 1;
}

static int full_counters_stay_full(void)
{
	memset(buf, 0xff, HOT_BYTES);
	WANT(profil(buf, HOT_BYTES, IN_HOT, ONE_TO_ONE) == 0);
	burn();
	WANT(stop() == 0);
	for (int i = 0; i < COUNTERS; i++)
		WANT(buf[i] == 65535);
	return 1;
}

static int no_room_counts_nothing(void)
{
	WANT(profil(buf, 0, IN_HOT, ONE_TO_ONE) == 0);
	burn();
	WANT(profil(buf, 1, IN_HOT, 1) == 0);
	burn();
	WANT(stop() == 0);
	WANT(sum(buf, COUNTERS) == 0);
	return 1;
}

static int leaves_sigprof_and_its_timer_alone(void)
{
	struct sigaction action;
	struct itimerval timer;

	WANT(profil(buf, HOT_BYTES, IN_HOT, ONE_TO_ONE) == 0);
	WANT(sigaction(SIGPROF, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
	WANT(getitimer(ITIMER_PROF, &timer) == 0);
	WANT(timer.it_value.tv_sec == 0 && timer.it_value.tv_usec == 0);
	return 1;
}

/* A whole page, so that every counter is inside it. */
static int memory_that_cannot_be_written_raises_no_signal(void)
{
	WANT(profil(page_read_only(), PAGE, IN_HOT, ONE_TO_ONE) == 0);
	burn();
	WANT(profil(page_gone(), PAGE, IN_HOT, ONE_TO_ONE) == 0);
	burn();
	WANT(stop() == 0);
	return 1;
}

static int survives_an_exec(void)
{
	pid_t self = getpid();

	WANT(self > 0);
	WANT(profil(buf, HOT_BYTES, IN_HOT, ONE_TO_ONE) == 0);
	/* a shell that uses CPU time and exits with the status of success */
	execl("/bin/sh", "sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 1",
	      (char *)NULL);
	return 0;
}

static int a_fork_child_keeps_counting(void)
{
	int ends[2];
	unsigned long mine = 0;

	if (!facts_live())
		SKIP("no tick comes later");
	WANT(pipe(ends) == 0);
	WANT(profil(buf, HOT_BYTES, IN_HOT, ONE_TO_ONE) == 0);
	if (fork() == 0) {
		unsigned long before = sum(buf, COUNTERS);

		burn();
		stop();
		mine = sum(buf, COUNTERS) - before;
		_exit(write(ends[1], &mine, sizeof(mine)) != sizeof(mine));
	}
	WANT(read(ends[0], &mine, sizeof(mine)) == sizeof(mine));
	WANT(stop() == 0);
	WANT(mine > 0);
	return 1;
}

static int sprofil_counts_in_several_regions(void)
{
	struct prof p[3];

	p[0] = region(left, 2, 0, 2);
	p[1] = region(other, 8, 0x1000, ONE_TO_ONE);
	p[2] = region(buf, HOT_BYTES, IN_HOT, ONE_TO_ONE);
	errno = 77;
	WANT(sprofil(p, 3, NULL, PROF_USHORT) == 0);
	WANT(errno == 77);
	burn();
	WANT(sprofil(NULL, 0, NULL, 0) == 0);
	WANT(sum(buf, COUNTERS) >= 20 && sum(other, 4) == 0);
	return 1;
}

static int sprofil_replaces_what_is_on(void)
{
	struct prof first = region(buf, HOT_BYTES, IN_HOT, ONE_TO_ONE);
	struct prof second = region(other, HOT_BYTES, IN_HOT, ONE_TO_ONE);

	WANT(sprofil(&first, 1, NULL, PROF_USHORT) == 0);
	WANT(sprofil(&second, 1, NULL, PROF_USHORT) == 0);
	burn();
	WANT(sprofil(&first, 1, NULL, PROF_USHORT) == 0);
	burn();
	WANT(sprofil(NULL, 0, NULL, 0) == 0);
	WANT(sum(buf, COUNTERS) > 0 && sum(other, COUNTERS) > 0);
	return 1;
}

static int pcs_below_every_region_are_nowhere(void)
{
	struct prof p = region(buf, HOT_BYTES, ~0ul - 0x10000, ONE_TO_ONE);

	WANT(sprofil(&p, 1, NULL, PROF_USHORT) == 0);
	burn();
	WANT(sprofil(NULL, 0, NULL, 0) == 0);
	WANT(sum(buf, COUNTERS) == 0);
	return 1;
}

static int any_size_and_scale_will_do(void)
{
	static const unsigned long scales[] = { 3, 5, 0xc000, 0x12345, 0xffffffff };

	for (int i = 0; i < 5; i++) {
		struct prof p = region(buf, HOT_BYTES, IN_HOT, scales[i]);

		WANT(sprofil(&p, 1, NULL, PROF_USHORT) == 0);
		WANT(sprofil(NULL, 0, NULL, 0) == 0);
		p.pr_size = 0;
		WANT(sprofil(&p, 1, NULL, PROF_USHORT) == 0);
		WANT(sprofil(NULL, 0, NULL, 0) == 0);
	}
	return 1;
}

static int regions_of_scale_0_and_1_are_dropped(void)
{
	struct prof p[2];

	p[0] = region(other, HOT_BYTES, IN_HOT, 0);
	p[1] = region(other, HOT_BYTES, IN_HOT, 1);
	WANT(sprofil(p, 2, NULL, PROF_USHORT) == 0);
	burn();
	WANT(sprofil(NULL, 0, NULL, 0) == 0);
	WANT(sum(other, COUNTERS) == 0);
	return 1;
}

static int full_uints_stay_full(void)
{
	unsigned int full = 0xffffffff;
	struct prof p = region(&full, sizeof(full), 0, 2);

	WANT(sprofil(&p, 1, NULL, PROF_UINT) == 0);
	burn();
	WANT(sprofil(NULL, 0, NULL, 0) == 0);
	WANT(full == 0xffffffff);
	return 1;
}

static int a_region_of_uints_counts(void)
{
	static unsigned int counter[HOT_BYTES / 4];
	struct prof p = region(counter, sizeof(counter), IN_HOT, ONE_TO_ONE);
	unsigned long total = 0;

	WANT(sprofil(&p, 1, NULL, PROF_UINT) == 0);
	burn();
	WANT(sprofil(NULL, 0, NULL, 0) == 0);
	for (int i = 0; i < HOT_BYTES / 4; i++)
		total += counter[i];
	WANT(total >= 20);
	return 1;
}

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Within a third: samples are statistical, and a wrong period differs by far more. */
static int tvp_is_the_time_of_a_tick(void)
{
	unsigned int ticks = 0;
	struct prof p = region(&ticks, sizeof(ticks), 0, 2);
	struct timeval tv = { 7, 7 };
	double spent = cpu_us(), told;

	WANT(sprofil(&p, 1, &tv, PROF_UINT) == 0);
	WANT(tv.tv_sec == 0 && tv.tv_usec > 0);
	if (!facts_live())
		return 1;
	for (int i = 0; i < 3; i++)
		burn();
	WANT(sprofil(NULL, 0, NULL, 0) == 0);
	spent = cpu_us() - spent;
	told = (double)ticks * (double)tv.tv_usec;
	WANT(told > spent * 0.67 && told < spent * 1.5);
	return 1;
}

static int prof_fast_is_a_millisecond(void)
{
	struct prof p = region(buf, HOT_BYTES, IN_HOT, ONE_TO_ONE);
	struct timeval tv = { 7, 7 };

	WANT(sprofil(&p, 1, &tv, PROF_USHORT | PROF_FAST) == 0);
	WANT(tv.tv_sec == 0 && tv.tv_usec == 1000);
	WANT(sprofil(NULL, 0, NULL, 0) == 0);
	return 1;
}

static int a_wrong_number_of_regions_is_refused(void)
{
	static struct prof p[4097];

	WANT_ERRNO(sprofil(p, -1, NULL, PROF_USHORT), E2BIG);
	WANT_ERRNO(sprofil(p, 4097, NULL, PROF_USHORT), E2BIG);
	WANT(sprofil(p, 4096, NULL, PROF_USHORT) == 0);
	return 1;
}

static int bad_pointers_are_refused(void)
{
	struct prof p = region(buf, HOT_BYTES, IN_HOT, ONE_TO_ONE);

	WANT_ERRNO(sprofil(NULL, 1, NULL, PROF_USHORT), EFAULT);
	WANT_ERRNO(sprofil(page_gone(), 1, NULL, PROF_USHORT), EFAULT);
	WANT_ERRNO(sprofil(&p, 1, page_gone(), PROF_USHORT), EFAULT);
	return 1;
}

static int unknown_flags_are_refused(void)
{
	struct prof p = region(buf, HOT_BYTES, IN_HOT, ONE_TO_ONE);

	WANT_ERRNO(sprofil(&p, 1, NULL, 4), EINVAL);
	return 1;
}

static int every_tick_is_replayed_where_it_belongs(void)
{
	unsigned short at[8];
	struct prof p[2];

	if (facts_live())
		SKIP("ticks are real");
	memset(at, 0, sizeof(at));
	WANT(profil(at, sizeof(at), AT, 0x8000) == 0);
	WANT(at[0] == TICKS_AT + TICKS_AT_1 && at[1] == TICKS_AT_4 && at[2] == TICKS_AT_8);
	WANT(profil(at, 2, MANY, ONE_TO_ONE) == 0);
	WANT(at[0] == 65535);
	p[0] = region(at, 2, AFTER, ONE_TO_ONE);
	p[1] = region(at + 1, 2, 0, 2);
	memset(at, 0, sizeof(at));
	WANT(sprofil(p, 2, NULL, PROF_USHORT) == 0);
	WANT(at[0] == TICKS_AFTER && at[1] == 65535);
	return 1;
}

static const struct fact facts[] = {
	{ "counts where the time is spent", counts_where_the_time_is_spent },
	{ "adds to what is there", adds_to_what_is_there },
	{ "counts nothing once stopped", counts_nothing_once_stopped },
	{ "scale 0 stops", scale_0_stops },
	{ "another call replaces it", another_call_replaces_it },
	{ "full counters stay full", full_counters_stay_full },
	{ "no room counts nothing", no_room_counts_nothing },
	{ "leaves SIGPROF and its timer alone", leaves_sigprof_and_its_timer_alone },
	{ "memory that cannot be written raises no signal",
	  memory_that_cannot_be_written_raises_no_signal },
	{ "survives an exec", survives_an_exec },
	{ "a fork child keeps counting", a_fork_child_keeps_counting },
	{ "sprofil counts in several regions", sprofil_counts_in_several_regions },
	{ "sprofil replaces what is on", sprofil_replaces_what_is_on },
	{ "pcs below every region are nowhere", pcs_below_every_region_are_nowhere },
	{ "any size and scale will do", any_size_and_scale_will_do },
	{ "regions of scale 0 and 1 are dropped", regions_of_scale_0_and_1_are_dropped },
	{ "full uints stay full", full_uints_stay_full },
	{ "a region of uints counts", a_region_of_uints_counts },
	{ "tvp is the time of a tick", tvp_is_the_time_of_a_tick },
	{ "PROF_FAST is a millisecond", prof_fast_is_a_millisecond },
	{ "a wrong number of regions is E2BIG", a_wrong_number_of_regions_is_refused },
	{ "bad pointers are EFAULT", bad_pointers_are_refused },
	{ "unknown flags are EINVAL", unknown_flags_are_refused },
	{ "every tick is replayed where it belongs", every_tick_is_replayed_where_it_belongs },
	{ NULL, NULL },
};

int main(void)
{
	return facts_try(facts);
}
