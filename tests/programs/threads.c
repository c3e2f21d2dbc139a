/* threads.c - "threads SECONDS": three threads that use so much CPU time, each in its own function
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TURNS 200000u

static double seconds;
static volatile uint64_t result;

__attribute__((noinline)) static uint64_t shift_and_add(uint64_t x)
{
	for (unsigned int i = 0; i < TURNS; i++)
		x = (x << 1) + (x >> 63) + i;
	return x;
}

__attribute__((noinline)) static uint64_t multiply(uint64_t x)
{
	for (unsigned int i = 0; i < TURNS; i++)
		x = x * 6364136223846793005u + i;
	return x;
}

__attribute__((noinline)) static uint64_t divide(uint64_t x)
{
	for (unsigned int i = 0; i < TURNS; i++)
		x = (0xfedcba9876543210u + i) / (x | 1);
	return x;
}

struct work {
	uint64_t (*turn)(uint64_t x);
	double share; /* of the whole CPU time */
	pthread_t thread;
};

static void *run(void *arg)
{
	struct work *w = arg;
	struct timespec used;
	uint64_t x = 1;

	do {
		x = w->turn(x);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	} while ((double)used.tv_sec + 1e-9 * (double)used.tv_nsec < w->share * seconds);
	result = x;
	return NULL;
}

int main(int argc, char **argv)
{
	struct work work[] = { { .turn = shift_and_add, .share = 0.2 },
			       { .turn = multiply, .share = 0.3 },
			       { .turn = divide, .share = 0.5 } };

	seconds = argc > 1 ? atof(argv[1]) : 1;
	getchar(); /* the profiler that attaches sends a line */
	for (unsigned int i = 0; i < 3; i++) {
		if (pthread_create(&work[i].thread, NULL, run, &work[i]))
			return fprintf(stderr, "cannot start a thread\n"), 1;
	}
	for (unsigned int i = 0; i < 3; i++)
		pthread_join(work[i].thread, NULL);
	return 0;
}
