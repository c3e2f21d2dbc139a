/* parallel.c - a loop of N threads at the same time, then one alone: for profiles of latency
 *
 * Prints a line for each, FUNCTION LEAST MOST: the limits of the time in ms in which any thread
 * ran. It is at least the CPU time, divided by the number of threads, and at most the CPU time, or
 * the wall clock's.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LOOP_MS 1000

static volatile unsigned long spun;

static double ms_of(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

__attribute__((noinline)) static void *together(void *arg)
{
	while (ms_of(CLOCK_THREAD_CPUTIME_ID) < LOOP_MS)
		spun++;
	return arg;
}

__attribute__((noinline)) static void alone(void)
{
	for (double end = ms_of(CLOCK_THREAD_CPUTIME_ID) + LOOP_MS;
	     ms_of(CLOCK_THREAD_CPUTIME_ID) < end;)
		spun++;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t *thread = calloc((size_t)n, sizeof(*thread));
	double began = ms_of(CLOCK_MONOTONIC), used = ms_of(CLOCK_PROCESS_CPUTIME_ID);

	for (int i = 0; thread && i < n; i++)
		pthread_create(&thread[i], NULL, together, NULL);
	for (int i = 0; thread && i < n; i++)
		pthread_join(thread[i], NULL);
	free(thread);
	began = ms_of(CLOCK_MONOTONIC) - began;
	used = ms_of(CLOCK_PROCESS_CPUTIME_ID) - used;
	printf("together %.3f %.3f\n", used / n, used < began ? used : began);
	used = ms_of(CLOCK_PROCESS_CPUTIME_ID);
	alone();
	used = ms_of(CLOCK_PROCESS_CPUTIME_ID) - used;
	printf("alone %.3f %.3f\n", used, used);
	return 0;
}
