/* waits.c - threads that wait for a lock, for the time and for input, and one that computes
 *
 * Prints a line for each, FUNCTION LEAST MOST: the limits of its off-CPU time in ms. MOST is the
 * time between two looks at the clock, LEAST what is left of it without the thread's CPU time and
 * all of its waits for a CPU.
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int input[2];
static volatile unsigned long spun;

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

__attribute__((noinline)) static void wait_for_lock(void)
{
	pthread_mutex_lock(&lock);
	spun++;
	pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) static void wait_for_time(void)
{
	const struct timespec ts = { 0, 10000000 };

	for (int i = 0; i < 20; i++)
		nanosleep(&ts, NULL);
	spun++;
}

__attribute__((noinline)) static void wait_for_input(void)
{
	char byte;

	if (read(input[0], &byte, 1) == 1)
		spun++;
	spun++;
}

__attribute__((noinline)) static void compute(void)
{
	for (double end = now_ms() + 200; now_ms() < end;)
		spun++;
}

struct wait {
	const char *name;
	void (*wait)(void);
	double least_ms;
	double most_ms;
};

static struct wait waits[] = {
	{ "wait_for_lock", wait_for_lock, 0, 0 },
	{ "wait_for_time", wait_for_time, 0, 0 },
	{ "wait_for_input", wait_for_input, 0, 0 },
	{ "compute", compute, 0, 0 },
};

/* The CPU time of this thread so far, and the time that it was ready to run. */
static double scheduled_ms(void)
{
	unsigned long long ran = 0, waited = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "r");

	if (!f || fscanf(f, "%llu %llu", &ran, &waited) != 2)
		perror("schedstat");
	if (f)
		fclose(f);
	return (double)(ran + waited) / 1e6;
}

static void *measure(void *arg)
{
	struct wait *w = arg;
	double began = now_ms();

	w->wait();
	w->most_ms = now_ms() - began;
	w->least_ms = w->most_ms - scheduled_ms();
	return NULL;
}

static void sleep_ms(unsigned int ms)
{
	const struct timespec ts = { 0, ms * 1000000L };

	nanosleep(&ts, NULL);
}

int main(void)
{
	pthread_t thread[4];

	if (pipe(input))
		return 1;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, measure, &waits[i]);
	sleep_ms(350);
	pthread_mutex_unlock(&lock);
	sleep_ms(100);
	if (write(input[1], "", 1) != 1)
		return 1;
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		printf("%s %.3f %.3f\n", waits[i].name, waits[i].least_ms, waits[i].most_ms);
	}
	return 0;
}
