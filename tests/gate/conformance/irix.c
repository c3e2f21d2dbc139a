/* irix.c - profil and sprofil by IRIX's manual */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/profil.h>
#include <sys/time.h>
#include <unistd.h>

#include "facts.h"

#define ALL_AT (TICKS_AT + TICKS_AT_1 + TICKS_AT_4 + TICKS_AT_8)

static unsigned short buf[32], other[32], rest[4];

static struct prof region(void *base, unsigned int size, unsigned long off, unsigned int scale)
{
	struct prof p;

	memset(&p, 0xee, sizeof(p)); /* the padding must not matter */
	p.pr_base = base;
	p.pr_size = size;
	p.pr_off = off;
	p.pr_scale = scale;
	return p;
}

static int counts_each_two_bytes_at_0x10000(void)
{
	struct prof p = region(buf, sizeof(buf), AT, 0x10000);

	errno = 77;
	WANT(sprofil(&p, 1, NULL, PROF_USHORT) == 0);
	WANT(errno == 77);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 && buf[2] == TICKS_AT_4 && buf[4] == TICKS_AT_8);
	WANT(sum(buf, 32) == ALL_AT);
	return 1;
}

static int one_to_one_for_instructions_is_0x8000_in_shorts(void)
{
	struct prof p = region(buf, sizeof(buf), AT, 0x8000);

	WANT(sprofil(&p, 1, NULL, PROF_USHORT) == 0);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 && buf[1] == TICKS_AT_4 && buf[2] == TICKS_AT_8);
	return 1;
}

static int one_to_one_for_instructions_is_0x10000_in_ints(void)
{
	unsigned int counter[8] = { 0, 0, 0, 0, 0, 0, 0, 9 };
	struct prof p = region(counter, sizeof(counter), AT, 0x10000);

	WANT(sprofil(&p, 1, NULL, PROF_UINT) == 0);
	WANT(counter[0] == TICKS_AT + TICKS_AT_1 && counter[1] == TICKS_AT_4);
	WANT(counter[2] == TICKS_AT_8 && counter[7] == 9);
	return 1;
}

static int finer_than_one_to_one_is_allowed(void)
{
	struct prof p = region(buf, sizeof(buf), AT, 0x20000);

	WANT(sprofil(&p, 1, NULL, PROF_USHORT) == 0);
	WANT(buf[0] == TICKS_AT && buf[1] == TICKS_AT_1 && buf[4] == TICKS_AT_4);
	WANT(buf[8] == TICKS_AT_8);
	return 1;
}

static int profil_is_one_region_of_shorts(void)
{
	WANT(profil((char *)buf, sizeof(buf), AT, 0x10000) == 0);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 && sum(buf, 32) == ALL_AT);
	WANT(profil(other, 2, 0, 2) == 0);
	WANT(other[0] == 65535 && other[1] == 0);
	WANT(profil(other, 2, 0, 0) == 0);
	return 1;
}

static int regions_come_in_any_order(void)
{
	struct prof p[3];

	p[0] = region(other, 4, MANY, 0x10000);
	p[1] = region(buf, sizeof(buf), AT, 0x10000);
	p[2] = region(rest, 2, AFTER, 0x10000);
	WANT(sprofil(p, 3, NULL, PROF_USHORT) == 0);
	WANT(other[0] == 65535 && rest[0] == TICKS_AFTER && sum(buf, 32) == ALL_AT);
	return 1;
}

static int the_largest_offset_at_or_below_the_pc_wins(void)
{
	struct prof p[2];

	p[0] = region(buf, sizeof(buf), AT, 0x10000);
	p[1] = region(other, sizeof(other), AT + 4, 0x10000);
	WANT(sprofil(p, 2, NULL, PROF_USHORT) == 0);
	WANT(sum(buf, 32) == TICKS_AT + TICKS_AT_1);
	WANT(other[0] == TICKS_AT_4 && other[2] == TICKS_AT_8);
	return 1;
}

static int the_first_of_equal_offsets_wins(void)
{
	struct prof p[2];

	p[0] = region(buf, sizeof(buf), AT, 0x10000);
	p[1] = region(other, sizeof(other), AT, 0x10000);
	WANT(sprofil(p, 2, NULL, PROF_USHORT) == 0);
	WANT(sum(buf, 32) == ALL_AT && sum(other, 32) == 0);
	return 1;
}

static int the_largest_offset_decides_alone_then_the_overflow_bin(void)
{
	struct prof p[3];

	p[0] = region(buf, sizeof(buf), AT, 0x10000);
	p[1] = region(other, 2, AT + 4, 0x10000);
	p[2] = region(rest, 2, 0, 2);
	WANT(sprofil(p, 3, NULL, PROF_USHORT) == 0);
	WANT(other[0] == TICKS_AT_4 && other[1] == 0);
	WANT(sum(buf, 32) == TICKS_AT + TICKS_AT_1);
	WANT(rest[0] == 65535);
	rest[0] = 0;
	WANT(sprofil(p, 2, NULL, PROF_USHORT) == 0);
	WANT(rest[0] == 0 && buf[4] == 0);
	return 1;
}

static int a_scale_of_2_counts_all_from_its_offset_on(void)
{
	unsigned int left = 0, all[2] = { 0, 0 };
	struct prof p[2];

	WANT(profil(buf, sizeof(buf), AT + 4, 2) == 0);
	WANT(buf[0] == 65535 && sum(buf, 32) == 65535);
	p[0] = region(all, sizeof(all), MANY, 2);
	p[1] = region(&left, sizeof(left), 0, 2);
	WANT(sprofil(p, 2, NULL, PROF_UINT) == 0);
	WANT(all[0] == TICKS_MANY + TICKS_AFTER && all[1] == 0);
	WANT(left == TICKS_ALL - TICKS_MANY - TICKS_AFTER);
	p[0] = region(buf, sizeof(buf), AT, 0x10000);
	p[1] = region(other, sizeof(other), AT + 4, 2);
	buf[0] = 0;
	WANT(sprofil(p, 2, NULL, PROF_USHORT) == 0);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 && buf[2] == 0 && other[0] == 65535);
	return 1;
}

static int the_overflow_bin_takes_what_is_left(void)
{
	unsigned int in[8] = { 0 }, left = 0;
	struct prof p[2];

	p[0] = region(in, sizeof(in), AT, 0x10000);
	p[1] = region(&left, sizeof(left), 0, 2);
	WANT(sprofil(p, 2, NULL, PROF_UINT) == 0);
	WANT(in[0] + in[1] + in[2] == ALL_AT && left == TICKS_ALL - ALL_AT);
	return 1;
}

static int the_overflow_bin_must_be_last(void)
{
	struct prof p[3];

	p[0] = region(rest, 2, 0, 2);
	p[1] = region(buf, sizeof(buf), AT, 0x10000);
	p[2] = region(other, 2, 0, 2);
	WANT_ERRNO(sprofil(p, 2, NULL, PROF_USHORT), EINVAL);
	WANT_ERRNO(sprofil(p, 3, NULL, PROF_USHORT), EINVAL);
	WANT(sprofil(p, 1, NULL, PROF_USHORT) == 0);
	return 1;
}

static int a_region_that_is_off_counts_nothing(void)
{
	unsigned int scale;
	struct prof p[3];

	for (scale = 0; scale < 2; scale++) {
		memset(buf, 0, sizeof(buf));
		memset(rest, 0, sizeof(rest));
		p[0] = region(other, sizeof(other), AT + 4, scale);
		p[1] = region(buf, sizeof(buf), AT, 0x10000);
		p[2] = region(rest, 2, 0, 2);
		WANT(sprofil(p, 3, NULL, PROF_USHORT) == 0);
		WANT(sum(other, 32) == 0 && sum(buf, 32) == TICKS_AT + TICKS_AT_1);
		WANT(rest[0] == TICKS_AT_HOT); /* none from AT + 4 on */
	}
	return 1;
}

static int a_region_without_a_counter_leaves_all_to_the_overflow_bin(void)
{
	struct prof p[3];

	p[0] = region(other, 0, AT + 4, 0x10000);
	p[1] = region(buf, sizeof(buf), AT, 0x10000);
	p[2] = region(rest, 2, 0, 2);
	WANT(sprofil(p, 2, NULL, PROF_USHORT) == 0);
	WANT(sum(other, 32) == 0 && sum(buf, 32) == TICKS_AT + TICKS_AT_1);
	WANT(sprofil(p, 3, NULL, PROF_USHORT) == 0);
	WANT(sum(other, 32) == 0 && rest[0] == 65535);
	return 1;
}

static int as_many_regions_as_profil_max(void)
{
	struct prof *p = calloc(PROFIL_MAX + 1, sizeof(*p));
	unsigned short *counter = calloc(PROFIL_MAX + 1, sizeof(*counter));

	for (int i = 0; i <= PROFIL_MAX; i++)
		p[i] = region(&counter[i], 2, AT + 4ul * (unsigned int)(PROFIL_MAX - i), 0x8000);
	WANT_ERRNO(sprofil(p, PROFIL_MAX + 1, NULL, PROF_USHORT), E2BIG);
	WANT(sum(counter, PROFIL_MAX + 1) == 0);
	WANT(sprofil(p + 1, PROFIL_MAX, NULL, PROF_USHORT) == 0);
	WANT(counter[PROFIL_MAX] == TICKS_AT + TICKS_AT_1);
	WANT(counter[PROFIL_MAX - 1] == TICKS_AT_4 && counter[PROFIL_MAX - 2] == TICKS_AT_8);
	WANT(counter[PROFIL_MAX - 64] == TICKS_AT_100);
	return 1;
}

static int no_regions_are_too_many(void)
{
	struct prof p = region(buf, sizeof(buf), AT, 0x10000);

	WANT_ERRNO(sprofil(&p, 0, NULL, PROF_USHORT), E2BIG);
	WANT_ERRNO(sprofil(&p, -1, NULL, PROF_USHORT), E2BIG);
	WANT_ERRNO(sprofil(NULL, 0, NULL, PROF_USHORT), E2BIG);
	return 1;
}

static int bad_pointers_are_efault(void)
{
	struct prof p = region(buf, sizeof(buf), AT, 0x10000);

	WANT_ERRNO(sprofil(NULL, 1, NULL, PROF_USHORT), EFAULT);
	WANT_ERRNO(sprofil(page_gone(), 1, NULL, PROF_USHORT), EFAULT);
	WANT_ERRNO(sprofil(&p, PROFIL_MAX, page_gone(), PROF_USHORT), EFAULT);
	WANT_ERRNO(sprofil(&p, 1, page_gone(), PROF_USHORT), EFAULT);
	WANT_ERRNO(sprofil(&p, 1, page_read_only(), PROF_USHORT), EFAULT);
	WANT(sum(buf, 32) == 0);
	return 1;
}

static int unknown_flags_are_refused(void)
{
	struct prof p = region(buf, sizeof(buf), AT, 0x10000);

	WANT_ERRNO(sprofil(&p, 1, NULL, 4), EINVAL);
	WANT_ERRNO(sprofil(&p, 1, NULL, PROF_UINT | 0x80000000u), EINVAL);
	return 1;
}

static int tvp_is_the_time_of_a_tick(void)
{
	struct prof p = region(buf, sizeof(buf), AT, 0x10000);
	struct timeval tv = { 7, 7 };

	WANT(sprofil(&p, 1, &tv, PROF_USHORT) == 0);
	WANT(tv.tv_sec == 0 && tv.tv_usec == 10000);
	return 1;
}

/* "no": the daemon refuses the fast clock to everyone but root. */
static int the_fast_clock_ticks_each_millisecond(void)
{
	struct prof p = region(buf, sizeof(buf), AT, 0x10000);
	struct timeval tv = { 7, 7 };
	const char *fast = getenv("FACTS_FAST");

	if (fast && !strcmp(fast, "no")) {
		WANT_ERRNO(sprofil(&p, 1, &tv, PROF_USHORT | PROF_FAST), EACCES);
		WANT(sum(buf, 32) == 0 && tv.tv_sec == 7 && tv.tv_usec == 7);
		return 1;
	}
	WANT(sprofil(&p, 1, &tv, PROF_USHORT | PROF_FAST) == 0);
	WANT(tv.tv_sec == 0 && tv.tv_usec == 1000 && sum(buf, 32) == ALL_AT);
	return 1;
}

static int a_fault_turns_off_that_region_alone(void)
{
	struct prof p[3];

	p[0] = region(page_read_only(), 64, AT, 0x10000);
	p[1] = region(NULL, 64, MANY, 0x10000);
	p[2] = region(buf, sizeof(buf), AFTER, 0x10000);
	WANT(sprofil(p, 3, NULL, PROF_USHORT) == 0);
	WANT(buf[0] == TICKS_AFTER);
	return 1;
}

static int counters_stay_at_their_maximum(void)
{
	unsigned int uint[2] = { 0xfffffffe, 3 };
	struct prof p = region(uint, sizeof(uint), MANY, 0x10000);

	buf[0] = 65534;
	WANT(profil(buf, sizeof(buf), AT, 0x10000) == 0);
	WANT(buf[0] == 65535);
	WANT(sprofil(&p, 1, NULL, PROF_UINT) == 0);
	WANT(uint[0] == 0xffffffff && uint[1] == 3);
	uint[0] = 5;
	WANT(sprofil(&p, 1, NULL, PROF_UINT) == 0);
	WANT(uint[0] == 5 + TICKS_MANY);
	return 1;
}

static int a_call_replaces_the_one_before(void)
{
	struct prof p[2];

	p[0] = region(buf, sizeof(buf), AT, 0x10000);
	p[1] = region(other, sizeof(other), AT, 0x10000);
	WANT(sprofil(&p[0], 1, NULL, PROF_USHORT) == 0);
	WANT(sprofil(&p[1], 1, NULL, PROF_USHORT) == 0);
	WANT(sum(buf, 32) == ALL_AT && sum(other, 32) == ALL_AT);
	return 1;
}

static int a_failing_call_changes_nothing(void)
{
	static unsigned short text[HOT_BYTES / 2];
	struct prof p = region(text, sizeof(text), (unsigned long)hot, 0x10000);
	unsigned long before;

	WANT(sprofil(&p, 1, NULL, PROF_USHORT) == 0);
	WANT_ERRNO(sprofil(&p, 0, NULL, PROF_USHORT), E2BIG);
	WANT_ERRNO(sprofil(NULL, 1, NULL, PROF_USHORT), EFAULT);
	WANT_ERRNO(sprofil(&p, 1, NULL, 4), EINVAL);
	before = sum(text, HOT_BYTES / 2);
	burn();
	p.pr_scale = 0;
	WANT(sprofil(&p, 1, NULL, PROF_USHORT) == 0);
	WANT(sum(text, HOT_BYTES / 2) > before);
	return 1;
}

static const struct fact facts[] = {
	{ "counts each two bytes at 0x10000", counts_each_two_bytes_at_0x10000 },
	{ "one to one for instructions is 0x8000 in shorts",
	  one_to_one_for_instructions_is_0x8000_in_shorts },
	{ "one to one for instructions is 0x10000 in ints",
	  one_to_one_for_instructions_is_0x10000_in_ints },
	{ "finer than one to one is allowed", finer_than_one_to_one_is_allowed },
	{ "profil is one region of shorts", profil_is_one_region_of_shorts },
	{ "regions come in any order", regions_come_in_any_order },
	{ "the largest offset at or below the pc wins",
	  the_largest_offset_at_or_below_the_pc_wins },
	{ "the first of equal offsets wins", the_first_of_equal_offsets_wins },
	{ "the largest offset decides alone, then the overflow bin",
	  the_largest_offset_decides_alone_then_the_overflow_bin },
	{ "a scale of 2 counts all from its offset on",
	  a_scale_of_2_counts_all_from_its_offset_on },
	{ "the overflow bin takes what is left", the_overflow_bin_takes_what_is_left },
	{ "the overflow bin must be last", the_overflow_bin_must_be_last },
	{ "a region that is off counts nothing", a_region_that_is_off_counts_nothing },
	{ "a region without a counter leaves all to the overflow bin",
	  a_region_without_a_counter_leaves_all_to_the_overflow_bin },
	{ "as many regions as PROFIL_MAX", as_many_regions_as_profil_max },
	{ "no regions are E2BIG", no_regions_are_too_many },
	{ "bad pointers are EFAULT", bad_pointers_are_efault },
	{ "unknown flags are EINVAL", unknown_flags_are_refused },
	{ "tvp is the time of a tick", tvp_is_the_time_of_a_tick },
	{ "the fast clock ticks each millisecond", the_fast_clock_ticks_each_millisecond },
	{ "a fault turns off that region alone", a_fault_turns_off_that_region_alone },
	{ "counters stay at their maximum", counters_stay_at_their_maximum },
	{ "a call replaces the one before", a_call_replaces_the_one_before },
	{ NULL, NULL },
};

/* Replayed samples are all written before a fault is possible. */
static const struct fact live_facts[] = {
	{ "a failing call changes nothing", a_failing_call_changes_nothing },
	{ NULL, NULL },
};

int main(void)
{
	return facts_try(facts_live() ? live_facts : facts);
}
