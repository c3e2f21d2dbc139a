/* kernel_sprofil_time.c - the counts of regions, rates, threads and system calls are their CPU time
 */
#include "tests/lib/sprofil_regions.h"

DAEMON_SUITE(kernel_sprofil_time, "--fast-rate", TICKS_RATE);

static void judge(unsigned long ticks, const struct loop_time *t, unsigned long period_ns,
		  const char *what)
{
	ticks_expect_spell(ticks, t, period_ns);
}

static const struct ticks_way spell = { TICKS_SPELL_NS, judge },
			      two_spells = { 2 * TICKS_SPELL_NS, judge },
			      four_spells = { 4 * TICKS_SPELL_NS, judge };

Test(kernel_sprofil_time, each_region_has_the_time_of_its_loop_and_the_overflow_bin_the_rest)
{
	regions_apart(&d, &spell);
}

Test(kernel_sprofil_time, counts_ticks_of_the_returned_length)
{
	regions_tick_length(&four_spells, &spell);
}

Test(kernel_sprofil_time, a_fast_tick_takes_a_millisecond_by_default)
{
	regions_default_tick(&d, &spell);
}

Test(kernel_sprofil_time, each_thread_has_its_own_time)
{
	regions_of_two_threads(&d, &two_spells);
}

Test(kernel_sprofil_time, time_in_the_kernel_counts_at_the_system_call)
{
	regions_of_system_call(&d, &spell);
}
