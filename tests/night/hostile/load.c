/* load.c - uses an attack's CPU time without the attack: PERCENT of one CPU */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "tests/lib/hostile.h"

#define TURN_NS 10000000

static uint64_t busy_ns;

static void *run(void *unused)
{
	for (;;) {
		uint64_t began = now_ns();
		struct timespec rest = { 0, (long)(TURN_NS - busy_ns) };

		while (now_ns() - began < busy_ns)
			;
		if (rest.tv_nsec)
			nanosleep(&rest, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned int percent = argc > 1 ? (unsigned int)atoi(argv[1]) : 100;
	unsigned int threads = (percent + 99) / 100;

	busy_ns = threads ? (uint64_t)TURN_NS * percent / 100 / threads : 0;
	for (unsigned int i = 0; i < threads; i++) {
		pthread_t t;

		if (pthread_create(&t, NULL, run, NULL))
			attack_fail("pthread_create");
	}
	attack_under_way();
	attack_wait(-1);
	return 0;
}
