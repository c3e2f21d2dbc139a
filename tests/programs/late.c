/* late.c - a library for dlopen() that uses CPU time */
#include <time.h>

void in_library(double seconds);

void in_library(double seconds)
{
	struct timespec now, end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	end.tv_nsec += (long)(seconds * 1e9);
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	do {
		for (unsigned long x = 1, i = 100000; i; i--) {
			x = x * 2862933555777941757ul + 1;
			__asm__ volatile("" : "+r"(x));
		}
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while (now.tv_sec < end.tv_sec ||
		 (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
}
