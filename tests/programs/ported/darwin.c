/* darwin.c - a Darwin program that profiles one function, and adds a buffer for a second */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "work.h"

#define BYTES 128 /* of text that each function has at least */

unsigned short first[BYTES / 2], second[BYTES / 2];

static unsigned long total(unsigned short *counter)
{
	unsigned long sum = 0;
	int i;

	for (i = 0; i < BYTES / 2; i++)
		sum += counter[i];
	return sum;
}

int main(int argc, char *argv[])
{
	char *a = (char *)heavy, *b = (char *)light;
	/* no further than the next function, whichever it is */
	size_t bytes = abs((int)(a - b)) < BYTES ? abs((int)(a - b)) : BYTES;
	unsigned long n, m;

	/* 0x10000: a counter for each two bytes */
	if (profil((char *)first, bytes, (u_long)heavy, 0x10000) < 0 ||
	    add_profil((char *)second, bytes, (u_long)light, 0x10000) < 0) {
		perror("profil");
		return 1;
	}
	work(argc > 1 ? atoi(argv[1]) : 2);
	profil(NULL, 0, 0, 0);

	n = total(first);
	m = total(second);
	printf("heavy %lu %.1f%%\n", n, 100.0 * n / (n + m));
	printf("light %lu %.1f%%\n", m, 100.0 * m / (n + m));
	return 0;
}
