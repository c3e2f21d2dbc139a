/* darwin.c - profil and add_profil by Darwin's manual */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "facts.h"

static unsigned short buf[32], other[32];

/* add_profil() counts only while a profile is on. */
static int is_on(void)
{
	unsigned short counter = 0;

	return add_profil((char *)&counter, sizeof(counter), AFTER, 0x10000) == 0 && counter;
}

static int counts_each_two_bytes_at_0x10000(void)
{
	errno = 77;
	WANT(profil((char *)buf, sizeof(buf), AT, 0x10000) == 0);
	WANT(errno == 77);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 && buf[2] == TICKS_AT_4 && buf[4] == TICKS_AT_8);
	WANT(sum(buf, 32) == TICKS_AT + TICKS_AT_1 + TICKS_AT_4 + TICKS_AT_8);
	return 1;
}

static int rounds_the_whole_product_down(void)
{
	WANT(profil((char *)buf, sizeof(buf), AT, 0xffff) == 0);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 && buf[1] == TICKS_AT_4 && buf[3] == TICKS_AT_8);
	return 1;
}

static int scale_1_is_valid(void)
{
	WANT(profil((char *)buf, sizeof(buf), AT, 1) == 0);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 + TICKS_AT_4 + TICKS_AT_8 + TICKS_AT_100);
	return 1;
}

static int scale_0_stops(void)
{
	WANT(profil((char *)buf, sizeof(buf), AT, 0x10000) == 0);
	WANT(is_on());
	WANT(profil((char *)buf, sizeof(buf), AT, 0) == 0);
	WANT(!is_on());
	WANT(profil(NULL, 0, 0, 0) == 0);
	return 1;
}

static int scales_above_0x10000_are_refused_and_end_nothing(void)
{
	WANT_ERRNO(profil((char *)buf, sizeof(buf), AT, 0x10001), EINVAL);
	WANT(sum(buf, 32) == 0);
	WANT(profil((char *)buf, sizeof(buf), AT, 0x10000) == 0);
	WANT_ERRNO(profil((char *)other, sizeof(other), AT, 0xffffffff), EINVAL);
	WANT(is_on() && sum(other, 32) == 0);
	return 1;
}

static int a_bad_buffer_is_efault_and_ends_what_is_on(void)
{
	WANT_ERRNO(profil(NULL, 64, AT, 0x10000), EFAULT);
	WANT_ERRNO(profil(page_gone(), 64, AT, 0x10000), EFAULT);
	WANT_ERRNO(profil(page_read_only(), 64, AT, 0x10000), EFAULT);
	WANT(profil((char *)buf, sizeof(buf), AT, 0x10000) == 0);
	WANT(is_on());
	WANT_ERRNO(profil(page_gone(), 64, AT, 0x10000), EFAULT);
	WANT(!is_on());
	return 1;
}

static int all_of_the_buffer_must_be_there(void)
{
	char *page = page_writable();

	WANT_ERRNO(profil(page, PAGE + 2, AT, 0x10000), EFAULT);
	WANT(profil(page, PAGE, AT, 0x10000) == 0);
	return 1;
}

static int another_call_replaces_it(void)
{
	WANT(profil((char *)buf, sizeof(buf), AT, 0x10000) == 0);
	WANT(profil((char *)other, sizeof(other), AT, 0x10000) == 0);
	WANT(buf[2] == TICKS_AT_4 && other[2] == TICKS_AT_4);
	return 1;
}

static int a_full_counter_stays_full(void)
{
	buf[0] = 65534;
	buf[1] = 7;
	WANT(profil((char *)buf, sizeof(buf), MANY, 0x10000) == 0);
	WANT(buf[0] == 65535 && buf[1] == 7);
	return 1;
}

static int no_counter_is_written_past_the_end(void)
{
	WANT(profil((char *)buf, 5, AT, 0x10000) == 0);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 && sum(buf + 1, 31) == 0);
	memset(buf, 0, sizeof(buf));
	WANT(profil((char *)buf, 0, AT, 0x10000) == 0);
	WANT(profil((char *)buf, 1, AT, 0x10000) == 0);
	WANT(sum(buf, 32) == 0);
	return 1;
}

static int add_profil_is_ignored_while_off(void)
{
	WANT(add_profil((char *)buf, sizeof(buf), AT, 0x10000) == 0);
	WANT(add_profil(page_gone(), 64, AT, 0x10000) == 0);
	WANT(add_profil((char *)buf, sizeof(buf), AT, 0x10001) == 0);
	WANT(sum(buf, 32) == 0);
	return 1;
}

static int add_profil_adds_a_buffer(void)
{
	unsigned short first[4] = { 0, 0, 0, 0 };

	WANT(profil((char *)first, sizeof(first), AT, 0x10000) == 0);
	WANT(add_profil((char *)buf, sizeof(buf), AT + 8, 0x10000) == 0);
	WANT(first[2] == 2 * TICKS_AT_4);
	WANT(buf[0] == TICKS_AT_8);
	return 1;
}

/* The order is profil()'s buffer, then the newest: the first with a counter for the pc counts. */
static int the_first_buffer_that_matches_counts(void)
{
	unsigned short first[1] = { 0 }, older[8], newer[3];

	memset(older, 0, sizeof(older));
	memset(newer, 0, sizeof(newer));
	WANT(profil((char *)first, sizeof(first), AT, 0x10000) == 0);
	WANT(add_profil((char *)older, sizeof(older), AT, 0x10000) == 0);
	WANT(older[0] == 0 && older[2] == TICKS_AT_4 && older[4] == TICKS_AT_8);
	WANT(add_profil((char *)newer, sizeof(newer), AT, 0x10000) == 0);
	WANT(newer[0] == 0 && newer[2] == TICKS_AT_4);
	WANT(older[2] == TICKS_AT_4 && older[4] == 2 * TICKS_AT_8);
	WANT(first[0] == 3 * (TICKS_AT + TICKS_AT_1));
	return 1;
}

static int add_profil_checks_as_profil_does(void)
{
	WANT(profil((char *)buf, sizeof(buf), AT, 0x10000) == 0);
	WANT_ERRNO(add_profil((char *)other, sizeof(other), AT, 0x10001), EINVAL);
	WANT(is_on());
	WANT_ERRNO(add_profil(page_gone(), 64, AT, 0x10000), EFAULT);
	WANT(!is_on());
	return 1;
}

static int add_profil_takes_64_buffers(void)
{
	static unsigned short added[65];

	WANT(profil((char *)buf, sizeof(buf), AT, 0x10000) == 0);
	for (int i = 0; i < 64; i++)
		WANT(add_profil((char *)&added[i], 2, AT + 0x100, 0x10000) == 0);
	WANT_ERRNO(add_profil((char *)&added[64], 2, AT + 0x100, 0x10000), EAGAIN);
	WANT(sum(added, 65) == 64 * TICKS_AT_100);
	return 1;
}

static int profil_drops_the_added_buffers(void)
{
	WANT(profil((char *)buf, sizeof(buf), AT, 0x10000) == 0);
	WANT(add_profil((char *)other, sizeof(other), MANY, 0x10000) == 0);
	WANT(other[0] == 65535);
	other[0] = 0;
	WANT(profil((char *)buf, sizeof(buf), AT, 0x10000) == 0);
	WANT(other[0] == 0);
	return 1;
}

static const struct fact facts[] = {
	{ "counts each two bytes at 0x10000", counts_each_two_bytes_at_0x10000 },
	{ "rounds the whole product down", rounds_the_whole_product_down },
	{ "scale 1 is valid", scale_1_is_valid },
	{ "scale 0 stops", scale_0_stops },
	{ "scales above 0x10000 are refused, and end nothing",
	  scales_above_0x10000_are_refused_and_end_nothing },
	{ "a bad buffer is EFAULT, and ends what is on",
	  a_bad_buffer_is_efault_and_ends_what_is_on },
	{ "all of the buffer must be there", all_of_the_buffer_must_be_there },
	{ "another call replaces it", another_call_replaces_it },
	{ "a full counter stays full", a_full_counter_stays_full },
	{ "no counter is written past the end", no_counter_is_written_past_the_end },
	{ "add_profil is ignored while off", add_profil_is_ignored_while_off },
	{ "add_profil adds a buffer", add_profil_adds_a_buffer },
	{ "the first buffer that matches counts", the_first_buffer_that_matches_counts },
	{ "add_profil checks as profil does", add_profil_checks_as_profil_does },
	{ "add_profil takes 64 buffers", add_profil_takes_64_buffers },
	{ "profil drops the added buffers", profil_drops_the_added_buffers },
	{ NULL, NULL },
};

int main(void)
{
	return facts_try(facts);
}
