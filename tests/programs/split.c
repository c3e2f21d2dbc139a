/* split.c - profiles two loops, the first with seven tenths of the time, as glibc documents it
 *
 * usage: split [SECONDS [on]]
 *
 * "on": after these seconds it keeps running until the end of its input.
 */
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "loops.h"

extern char __executable_start, etext;

#define ROUNDS 5

/* <unistd.h> declares the buffer nonnull, but NULL stops a profile: hides it from the compiler. */
static int (*volatile stop)(unsigned short *buf, size_t bytes, size_t offset,
			    unsigned int scale) = profil;

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

/* Prints what a profiler inside the process would leave in it, in one line: "footprint ..." */
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

/* The samples of the code between @from and @to. */
static unsigned long sum(const unsigned short *counts, uintptr_t from, uintptr_t to)
{
	uintptr_t start = (uintptr_t)&__executable_start;
	unsigned long ticks = 0;

	for (uintptr_t i = (from - start) / 2; i < (to - start) / 2; i++)
		ticks += counts[i];
	return ticks;
}

static void show_ticks(const char *what, unsigned long ticks, uint64_t cpu, uint64_t task)
{
	printf("%s %lu ticks %llu ns %llu task-ns\n", what, ticks, (unsigned long long)cpu,
	       (unsigned long long)task);
}

static int input_has_ended(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	char byte;

	return poll(&in, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

int main(int argc, char **argv)
{
	uint64_t round_ns = (uint64_t)(1e9 * (argc > 1 ? atof(argv[1]) : 1) / ROUNDS);
	uintptr_t start = (uintptr_t)&__executable_start, end = (uintptr_t)&etext;
	size_t bytes = ((end - start) / 2 + 1) * sizeof(unsigned short);
	unsigned short *counts = calloc(1, bytes);
	struct loop_time first = { 0 }, second = { 0 };
	struct loop_watch all;

	show_footprint();
	if (!counts || profil(counts, bytes, start, 65536) < 0)
		return perror("profil"), 1;
	show_footprint();

	loop_watch_start(&all);
	for (int i = 0; i < ROUNDS || (argc > 2 && !input_has_ended()); i++) {
		loop_timed(&first, 0, 7 * round_ns / 10);
		loop_timed(&second, 1, 3 * round_ns / 10);
	}
	loop_watch_stop(&all);

	if (stop(NULL, 0, 0, 0) < 0)
		return perror("profil off"), 1;
	show_footprint();
	show_ticks("first", sum(counts, loop_at(0), loop_at(1)), first.cpu_ns, first.task_ns);
	show_ticks("second", sum(counts, loop_at(1), loop_at(2)), second.cpu_ns, second.task_ns);
	show_ticks("all", sum(counts, start, end), all.cpu_ns, all.task_ns);
	free(counts);
	return 0;
}
