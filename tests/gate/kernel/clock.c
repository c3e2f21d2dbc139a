/* clock.c - the real clocks: that samples come, are where the program runs, and end with the stop
 *
 * The one test that waits for a clock. How many samples come, and when, it does not say: the kernel
 * and the load of the machine decide that.
 */
#include <criterion/parameterized.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/profil.h>
#include <unistd.h>

#include "profil.h"
#include "synthetic.h"
#include "tests/programs/loops.h"

#define LOOP 3
#define SAMPLES 100

static uint32_t sum_of(const uint32_t *buf)
{
	uint32_t sum = 0;

	for (int i = 0; i < LOOPS; i++)
		sum += ((const volatile uint32_t *)buf)[i];
	return sum;
}

/* One counter for each loop. */
static void profile_loops(uint32_t *buf)
{
	struct prof one = { buf, LOOPS * sizeof(*buf), loop_at(0), 4 * 65536 / LOOP_BYTES };

	cr_assert_eq(sprofil(&one, 1, NULL, PROF_UINT), 0, "%s", strerror(errno));
}

ParameterizedTestParameters(real_clock, samples_come_until_the_stop)
{
	static char clocks[][16] = { "tick", "cpu-clock" };

	return cr_make_param_array(char[16], clocks, 2);
}

ParameterizedTest(char clock[16], real_clock, samples_come_until_the_stop)
{
	const char *args[] = { "--clock", clock, NULL };
	static uint32_t buf[LOOPS], next[LOOPS], after[LOOPS];
	struct profil_msg_profile p;
	struct daemon d;
	uint32_t sum;

	daemon_start(&d, NULL, args);
	profile_loops(buf);
	while (sum_of(buf) < SAMPLES)
		loop_for(LOOP, 1000000);
	cr_assert_eq(profil_sync(), 0, "%s", strerror(errno));
	sum = sum_of(buf); /* before the daemon says its total: samples go on */
	synthetic_list(&d, getpid(), &p);
	cr_expect_geq(p.total, sum + p.unmatched + p.lost);
	cr_expect_eq(sum_of(buf), buf[LOOP], "samples in loops that have not run");
	cr_expect_eq(p.lost, 0);

	profile_loops(next); /* and stops the first */
	memcpy(after, buf, sizeof(buf));
	while (sum_of(next) < SAMPLES)
		loop_for(LOOP, 1000000);
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
	cr_expect_arr_eq(buf, after, sizeof(buf), "the stopped buffer was written");
	memcpy(after, next, sizeof(next));
	loop_for(LOOP, 100000000);
	cr_expect_arr_eq(next, after, sizeof(next), "the stopped buffer was written");
	daemon_stop(&d);
}
