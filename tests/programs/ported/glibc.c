/* glibc.c - a GNU program that profiles its own text section and prints the hot lines */
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "work.h"

#define LINE 16 /* bytes of text for a counter */

extern char __executable_start, etext;

static size_t low;
static unsigned short *counter;

static unsigned long between(size_t from, size_t to)
{
	unsigned long sum = 0;
	size_t i;

	for (i = (from - low) / LINE; i < (to - low) / LINE; i++)
		sum += counter[i];
	return sum;
}

int main(int argc, char *argv[])
{
	size_t i, lines;
	unsigned long a, b;

	low = (size_t)&__executable_start;
	lines = ((size_t)&etext - low) / LINE + 1;
	counter = calloc(lines, sizeof(*counter));
	if (profil(counter, lines * sizeof(*counter), low, 65536 * 2 / LINE) < 0) {
		perror("profil");
		return 1;
	}
	work(argc > 1 ? atoi(argv[1]) : 2);
	profil(counter, 0, 0, 0);

	for (i = 0; i < lines; i++)
		if (counter[i])
			printf("%#zx %u\n", low + i * LINE, counter[i]);
	a = between((size_t)heavy, (size_t)light);
	b = between((size_t)light, (size_t)work);
	printf("heavy %lu %.1f%%\n", a, 100.0 * a / (a + b));
	printf("light %lu %.1f%%\n", b, 100.0 * b / (a + b));
	return 0;
}
