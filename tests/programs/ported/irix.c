/* irix.c - an IRIX program that has an sprofil() region for each mapped object */
#define _GNU_SOURCE /* the list of objects was rld's on IRIX */
#include <link.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/profil.h>

#include "work.h"

#define NOBJECTS 64

struct prof regions[NOBJECTS];
const char *names[NOBJECTS];
int nregions;

/* One counter for each instruction of four bytes, as on MIPS. */
static int add_object(struct dl_phdr_info *object, size_t size, void *arg)
{
	int i;

	for (i = 0; i < object->dlpi_phnum && nregions < NOBJECTS - 1; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];
		struct prof *r = &regions[nregions];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		r->pr_off = object->dlpi_addr + p->p_vaddr;
		r->pr_size = p->p_memsz / 4 * sizeof(unsigned int);
		r->pr_base = calloc(1, r->pr_size);
		r->pr_scale = 0x10000;
		names[nregions++] = *object->dlpi_name ? object->dlpi_name : "main";
	}
	return 0;
}

static unsigned long total(const struct prof *r)
{
	unsigned int *counter = r->pr_base;
	unsigned long sum = 0;
	unsigned i;

	for (i = 0; i < r->pr_size / sizeof(*counter); i++)
		sum += counter[i];
	return sum;
}

int main(int argc, char **argv)
{
	unsigned int elsewhere = 0;
	unsigned long all = 0;
	struct timeval tick;
	clock_t half;
	double x = 0.5;
	int i;

	dl_iterate_phdr(add_object, NULL);
	regions[nregions].pr_base = &elsewhere; /* the overflow bin */
	regions[nregions].pr_size = sizeof(elsewhere);
	regions[nregions].pr_off = 0;
	regions[nregions].pr_scale = 2;
	if (sprofil(regions, nregions + 1, &tick, PROF_UINT) < 0) {
		perror("sprofil");
		return 1;
	}

	/* half of the time here, then half in the mathematical library, less what its calls cost */
	half = (argc > 1 ? atoi(argv[1]) : 2) * (clock_t)CLOCKS_PER_SEC / 2;
	while (clock() < half) {
		heavy();
		light();
	}
	while (clock() < 2 * half)
		for (i = 0; i < 1000; i++)
			x = tgamma(3 + sin(x + i));
	regions[nregions].pr_scale = 0;
	sprofil(&regions[nregions], 1, NULL, PROF_UINT);

	for (i = 0; i < nregions; i++)
		all += total(&regions[i]);
	all += elsewhere;
	printf("tick %ld us, x %g\n", (long)tick.tv_usec, x);
	for (i = 0; i < nregions; i++) {
		const char *base = strrchr(names[i], '/');

		printf("%s %lu %.1f%%\n", base ? base + 1 : names[i], total(&regions[i]),
		       100.0 * total(&regions[i]) / all);
	}
	printf("elsewhere %u %.1f%%\n", elsewhere, 100.0 * elsewhere / all);
	return 0;
}
