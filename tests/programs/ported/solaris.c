/* solaris.c - a Solaris program that samples its pc and prints the function of each sample */
#include <pcsample.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "work.h"

#define NSAMPLES 100000

uintptr_t samples[NSAMPLES];

static struct {
	const char *name;
	uintptr_t start;
	long hits;
} functions[] = {
	{ "heavy", (uintptr_t)heavy, 0 },
	{ "light", (uintptr_t)light, 0 },
	{ "work", (uintptr_t)work, 0 },
};

#define NFUNCTIONS ((int)(sizeof(functions) / sizeof(functions[0])))

/* The function that starts closest below; anything else is in a library. */
static int find(uintptr_t pc)
{
	int i, best = -1;

	for (i = 0; i < NFUNCTIONS; i++)
		if (pc >= functions[i].start && pc - functions[i].start < 4096 &&
		    (best < 0 || functions[i].start > functions[best].start))
			best = i;
	return best;
}

int main(int argc, char *argv[])
{
	unsigned short everything = 0;
	long i, n, known = 0;

	if (pcsample(samples, NSAMPLES) < 0) {
		perror("pcsample");
		return 1;
	}
	work(argc > 1 ? atoi(argv[1]) : 2);
	n = pcsample(samples, 0);

	for (i = 0; i < n; i++) {
		int f = find(samples[i]);

		if (f >= 0) {
			functions[f].hits++;
			known++;
		}
	}
	printf("samples %ld\n", n);
	for (i = 0; i < NFUNCTIONS; i++)
		printf("%s %ld %.1f%%\n", functions[i].name, functions[i].hits,
		       100.0 * functions[i].hits / (known ? known : 1));

	/* and once as a clock that does not interrupt: scale 2 */
	profil(&everything, sizeof(everything), 0, 2);
	work(argc > 1 ? atoi(argv[1]) + 1 : 3);
	profil(&everything, sizeof(everything), 0, 0);
	printf("clock %u\n", everything);
	return 0;
}
