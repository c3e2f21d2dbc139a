/* v7.c - profil by the seventh edition's manual */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "facts.h"

static short buf[32];

static int counts_by_words_at_0177777(void)
{
	errno = 77;
	WANT(profil((char *)buf, sizeof(buf), (int)AT, 0177777) == 0);
	WANT(errno == 77);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 && buf[2] == TICKS_AT_4 && buf[4] == TICKS_AT_8);
	return 1;
}

static int pairs_of_words_share_a_counter_at_077777(void)
{
	WANT(profil((char *)buf, sizeof(buf), (int)AT, 077777) == 0);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 && buf[1] == TICKS_AT_4 && buf[2] == TICKS_AT_8);
	return 1;
}

static int all_is_in_the_first_counter_at_2(void)
{
	WANT(profil((char *)buf, sizeof(buf), (int)AT, 02) == 0);
	WANT(buf[0] == TICKS_AT + TICKS_AT_1 + TICKS_AT_4 + TICKS_AT_8 + TICKS_AT_100);
	return 1;
}

static int scale_0_turns_it_off(void)
{
	WANT(profil((char *)buf, sizeof(buf), (int)AT, 0) == 0);
	WANT(buf[0] == 0);
	return 1;
}

static int a_bufsiz_of_0_renders_it_ineffective(void)
{
	WANT(profil((char *)buf, 0, (int)AT, 0177777) == 0);
	WANT(buf[0] == 0);
	return 1;
}

static int a_memory_fault_turns_it_off_without_a_signal(void)
{
	WANT(profil(page_gone(), 64, (int)AT, 0177777) == 0);
	WANT(profil(page_read_only(), 64, (int)AT, 0177777) == 0);
	WANT(profil((char *)0, 64, (int)AT, 0177777) == 0);
	return 1;
}

static int a_full_counter_stays_full(void)
{
	unsigned short full[2] = { 65530, 0 };

	WANT(profil((char *)full, sizeof(full), (int)MANY, 0177777) == 0);
	WANT(full[0] == 65535 && full[1] == 0);
	return 1;
}

static int another_call_replaces_it(void)
{
	static short other[32];

	WANT(profil((char *)buf, sizeof(buf), (int)AT, 0177777) == 0);
	WANT(profil((char *)other, sizeof(other), (int)AT, 0177777) == 0);
	WANT(buf[0] == other[0] && buf[0] == TICKS_AT + TICKS_AT_1);
	return 1;
}

static const struct fact facts[] = {
	{ "counts by words at 0177777", counts_by_words_at_0177777 },
	{ "pairs of words share a counter at 077777", pairs_of_words_share_a_counter_at_077777 },
	{ "all is in the first counter at 2", all_is_in_the_first_counter_at_2 },
	{ "scale 0 turns it off", scale_0_turns_it_off },
	{ "a bufsiz of 0 renders it ineffective", a_bufsiz_of_0_renders_it_ineffective },
	{ "a memory fault turns it off, without a signal",
	  a_memory_fault_turns_it_off_without_a_signal },
	{ "a full counter stays full", a_full_counter_stays_full },
	{ "another call replaces it", another_call_replaces_it },
	{ NULL, NULL },
};

int main(void)
{
	return facts_try(facts);
}
