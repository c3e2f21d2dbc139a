/* work.h - the work of the ported programs: seven parts heavy(), three parts light() */
#ifndef PROFIL_TEST_WORK_H
#define PROFIL_TEST_WORK_H

#include <time.h>

static volatile unsigned long sink;

static void heavy(void)
{
	long i;

	for (i = 0; i < 70000; i++)
		sink = sink * 1103515245 + 12345;
}

static void light(void)
{
	long i;

	for (i = 0; i < 30000; i++)
		sink = sink * 1103515245 + 12345;
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
