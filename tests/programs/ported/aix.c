/* aix.c - an AIX program that profiles itself by monitor() and reads its mon.out as prof(1) does */
#include <mon.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

#define NCOUNTERS 4096

HISTCOUNTER counters[NCOUNTERS];

struct header {
	caddr_t lpc, hpc;
	size_t nfns;
};

/* Adds up the counters between two addresses. */
long ticks(h, n, from, to)
struct header *h;
int n;
caddr_t from, to;
{
	double width = (double)(h->hpc - h->lpc) / n;
	long sum = 0;
	int i;

	for (i = (from - h->lpc) / width; i < (to - h->lpc) / width && i < n; i++)
		sum += counters[i];
	return sum;
}

int main(argc, argv)
int argc;
char **argv;
{
	caddr_t low = (caddr_t)heavy, middle = (caddr_t)light, high = (caddr_t)work;
	struct header h;
	long a, b;
	FILE *f;
	int n;

	/* heavy() before light() before work(), as the compiler found them */
	if (low > middle || middle > high) {
		fprintf(stderr, "%s: functions out of order\n", argv[0]);
		return 2;
	}
	if (monitor(heavy, work, counters, NCOUNTERS, 0) == -1) {
		perror("monitor");
		return 1;
	}
	work(argc > 1 ? atoi(argv[1]) : 2);
	monitor((caddr_t)0);

	f = fopen("mon.out", "r");
	if (!f || fread(&h, sizeof(h), 1, f) != 1) {
		perror("mon.out");
		return 1;
	}
	n = fread(counters, sizeof(counters[0]), NCOUNTERS, f);
	fclose(f);
	a = ticks(&h, n, low, middle);
	b = ticks(&h, n, middle, high);
	printf("heavy %ld %.1f%%\n", a, 100.0 * a / (a + b));
	printf("light %ld %.1f%%\n", b, 100.0 * b / (a + b));
	return 0;
}
