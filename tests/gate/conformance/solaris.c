/* solaris.c - profil and pcsample by Solaris's manual */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "facts.h"

int profil_sync(void);

static unsigned short buf[32];

static int counts_each_two_bytes_at_1(void)
{
	errno = 77;
	WANT(profil(buf, sizeof(buf), AT, 0200000) == 0);
	WANT(errno == 77);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 && buf[2] == TICKS_AT_4 && buf[4] == TICKS_AT_8);
	WANT(sum(buf, 32) == TICKS_AT + TICKS_AT_1 + TICKS_AT_4 + TICKS_AT_8);
	return 1;
}

static int the_default_scale_is_8_bytes_a_counter(void)
{
	WANT(profil(buf, sizeof(buf), AT, 0x4000) == 0);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 + TICKS_AT_4 && buf[1] == TICKS_AT_8);
	return 1;
}

static int scale_2_is_one_counter(void)
{
	WANT(profil(buf, sizeof(buf), AFTER, 2) == 0);
	WANT(buf[0] == TICKS_AFTER && sum(buf + 1, 31) == 0);
	return 1;
}

static int scale_2_needs_the_room_of_a_counter(void)
{
	WANT(profil(buf, 1, 0, 2) == 0);
	WANT(sum(buf, 32) == 0);
	return 1;
}

static int scales_0_and_1_are_off(void)
{
	WANT(profil(buf, sizeof(buf), AT, 0) == 0);
	WANT(profil(buf, sizeof(buf), AT, 1) == 0);
	WANT(sum(buf, 32) == 0);
	return 1;
}

static int nothing_is_checked_at_the_call(void)
{
	WANT(profil((unsigned short *)0, 64, AT, 0x8000) == 0);
	WANT(profil(page_gone(), 64, AT, 0x8000) == 0);
	WANT(profil(page_read_only(), 64, AT, 0x8000) == 0);
	WANT(profil(buf, 0, AT, 0x8000) == 0);
	WANT(sum(buf, 32) == 0);
	return 1;
}

/* The counter's 32768th sample ends the profile, so later samples are not counted. */
static int a_count_stays_at_32767_and_stops_it_all(void)
{
	static unsigned short all[0x20000];

	WANT(profil(all, sizeof(all), AT, 16) == 0);
	WANT(all[0] == TICKS_AT + TICKS_AT_1 + TICKS_AT_4 + TICKS_AT_8 + TICKS_AT_100);
	WANT(all[(MANY - AT) >> 13] == 32767);
	WANT(all[(AFTER - AT) >> 13] == 0);
	return 1;
}

static int a_count_above_32767_stays_and_stops_it(void)
{
	buf[0] = 40000;
	WANT(profil(buf, sizeof(buf), AT, 0200000) == 0);
	WANT(buf[0] == 40000 && sum(buf + 1, 31) == 0);
	return 1;
}

static int pcsample_stores_pcs_until_it_is_full(void)
{
	uintptr_t pc[TICKS_AT_HOT + 8];

	memset(pc, 0, sizeof(pc));
	WANT(pcsample(pc, TICKS_AT_HOT + 6) == 0);
	WANT(pc[0] == (uintptr_t)hot && pc[TICKS_AT_HOT - 1] == (uintptr_t)hot);
	WANT(pc[TICKS_AT_HOT] == AT && pc[TICKS_AT_HOT + 3] == AT + 1);
	WANT(pc[TICKS_AT_HOT + 4] == AT + 4 && pc[TICKS_AT_HOT + 5] == AT + 4);
	WANT(pc[TICKS_AT_HOT + 6] == 0);
	WANT(pcsample(NULL, 0) == TICKS_AT_HOT + 6);
	return 1;
}

static int pcsample_tells_how_many_since_the_last_call(void)
{
	uintptr_t pc[16];

	WANT(pcsample(pc, 4) == 0);
	WANT(pcsample(pc, 16) == 4);
	WANT(pcsample(pc, 0) == 16);
	WANT(pcsample(pc, 0) == 0);
	return 1;
}

/* profil_sync() and fork(), which also syncs, do not count as calls of pcsample(). */
static int pcsample_tells_how_many_since_its_own_last_call(void)
{
	uintptr_t pc[16];
	int status;
	pid_t pid;

	WANT(pcsample(pc, 4) == 0);
	WANT(profil_sync() == 0);
	WANT(pcsample(pc, 16) == 4);
	pid = fork();
	if (pid == 0)
		_exit(0);
	WANT(waitpid(pid, &status, 0) == pid && status == 0);
	WANT(pcsample(pc, 0) == 16);
	return 1;
}

static int pcsample_refuses_a_negative_number(void)
{
	uintptr_t pc[4];

	WANT_ERRNO(pcsample(pc, -1), EINVAL);
	return 1;
}

static int pcsample_stores_all_where_there_is_room(void)
{
	static uintptr_t pc[TICKS_ALL + 1];

	WANT(pcsample(pc, TICKS_ALL + 1) == 0);
	WANT(pc[TICKS_ALL - 1] == AFTER && pc[TICKS_ALL] == 0);
	WANT(pcsample(pc, 0) == TICKS_ALL);
	return 1;
}

static int the_last_of_profil_and_pcsample_wins(void)
{
	uintptr_t pc[4];

	WANT(profil(buf, sizeof(buf), AT, 0200000) == 0);
	WANT(pcsample(pc, 4) == 0);
	WANT(profil(buf, sizeof(buf), AT, 0200000) == 0);
	WANT(buf[2] == 2 * TICKS_AT_4);
	WANT(pcsample(pc, 0) == 0);
	return 1;
}

static const struct fact facts[] = {
	{ "counts each two bytes at 1", counts_each_two_bytes_at_1 },
	{ "the default scale is 8 bytes a counter", the_default_scale_is_8_bytes_a_counter },
	{ "scale 2 is one counter", scale_2_is_one_counter },
	{ "scale 2 needs the room of a counter", scale_2_needs_the_room_of_a_counter },
	{ "scales 0 and 1 are off", scales_0_and_1_are_off },
	{ "nothing is checked at the call", nothing_is_checked_at_the_call },
	{ "a count stays at 32767 and stops it all", a_count_stays_at_32767_and_stops_it_all },
	{ "a count above 32767 stays, and stops it", a_count_above_32767_stays_and_stops_it },
	{ "pcsample stores pcs until it is full", pcsample_stores_pcs_until_it_is_full },
	{ "pcsample tells how many since the last call",
	  pcsample_tells_how_many_since_the_last_call },
	{ "pcsample tells how many since its own last call",
	  pcsample_tells_how_many_since_its_own_last_call },
	{ "pcsample refuses a negative number", pcsample_refuses_a_negative_number },
	{ "pcsample stores all where there is room", pcsample_stores_all_where_there_is_room },
	{ "the last of profil and pcsample wins", the_last_of_profil_and_pcsample_wins },
	{ NULL, NULL },
};

int main(void)
{
	return facts_try(facts);
}
