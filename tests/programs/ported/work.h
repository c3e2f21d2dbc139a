/* work.h - the work of the ported programs: seven parts heavy(), three parts light() */
#ifndef PROFIL_TEST_WORK_H
#define PROFIL_TEST_WORK_H

#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;
static long turn;

/*
 * In registers, where an iteration takes the same time in both: one that goes through memory takes
 * half as long again or not, as the processor guesses the address of what was just stored.
 */
static void heavy(void)
{
	register unsigned long x = sink;
	register long i;

	turn = 1000 + rand() % 40000; /* equal turns may fall in step with the samples */
	for (i = 7 * turn; i > 0; i--)
		x = x * 1103515245 + 12345;
	sink = x;
}

static void light(void)
{
	register unsigned long x = sink;
	register long i;

	for (i = 3 * turn; i > 0; i--)
		x = x * 1103515245 + 12345;
	sink = x;
}

/* Goes on for that many seconds of CPU time. */
static void work(int seconds)
{
	while (clock() < seconds * (clock_t)CLOCKS_PER_SEC) {
		heavy();
		light();
	}
}

#endif
