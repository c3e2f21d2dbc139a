/* split.c - two loops, the first with seven tenths of the time, profiled as glibc documents it */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "loops.h"

extern char __executable_start, etext;

#define ROUNDS 5

/* Prints the lines of /proc/self/@file that begin with @prefix, as parts of one line. */
static void show_lines(const char *file, const char *prefix)
{
	char path[64], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/%s", file);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, prefix, strlen(prefix)))
			printf(" %.*s;", (int)strcspn(line, "\n"), line);
	}
	if (f)
		fclose(f);
}

static void show_names(const char *what)
{
	const struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/self/%s", what);
	dir = opendir(path);
	printf(" %s:", what);
	while (dir && (entry = readdir(dir)))
		printf(" %s", entry->d_name);
	printf(";");
	if (dir)
		closedir(dir);
}

/* What a profiler of the old kind would leave in us, in one line: "footprint ..." */
static void show_footprint(void)
{
	static const char *const lines[] = { "SigPnd", "ShdPnd", "SigBlk",
					     "SigIgn", "SigCgt", "Threads" };
	const int timers[] = { ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF };
	struct itimerval timer;

	printf("footprint");
	for (int i = 0; i < 6; i++)
		show_lines("status", lines[i]);
	show_lines("timers", "");
	show_names("fd");
	show_names("task");
	for (int i = 0; i < 3; i++) {
		getitimer(timers[i], &timer);
		printf(" itimer %d: %ld.%06ld;", timers[i], (long)timer.it_value.tv_sec,
		       (long)timer.it_value.tv_usec);
	}
	printf("\n");
}

/* The ticks of the code between @from and @to. */
static unsigned long sum(const unsigned short *counts, uintptr_t from, uintptr_t to)
{
	uintptr_t start = (uintptr_t)&__executable_start;
	unsigned long ticks = 0;

	for (uintptr_t i = (from - start) / 2; i < (to - start) / 2; i++)
		ticks += counts[i];
	return ticks;
}

int main(int argc, char **argv)
{
	uint64_t round_ns = (uint64_t)(1e9 * (argc > 1 ? atof(argv[1]) : 1) / ROUNDS);
	uintptr_t start = (uintptr_t)&__executable_start, end = (uintptr_t)&etext;
	size_t bytes = ((end - start) / 2 + 1) * sizeof(unsigned short);
	unsigned short *counts = calloc(1, bytes), *volatile off = NULL;
	uint64_t began, first_ns = 0, second_ns = 0, all_ns;

	show_footprint();
	if (!counts || profil(counts, bytes, start, 65536) < 0)
		return perror("profil"), 1;
	show_footprint();

	began = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < ROUNDS; i++) {
		first_ns += loop_for(0, 7 * round_ns / 10);
		second_ns += loop_for(1, 3 * round_ns / 10);
	}
	all_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - began;

	if (profil(off, 0, 0, 0) < 0)
		return perror("profil off"), 1;
	show_footprint();
	printf("first %lu ticks %llu ns\n", sum(counts, loop_at(0), loop_at(1)),
	       (unsigned long long)first_ns);
	printf("second %lu ticks %llu ns\n", sum(counts, loop_at(1), loop_at(2)),
	       (unsigned long long)second_ns);
	printf("all %lu ticks %llu ns\n", sum(counts, start, end), (unsigned long long)all_ns);
	return 0;
}
