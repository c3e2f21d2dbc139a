/* passes.c - what a pass of the mirror costs a program that has nothing else to do
 *
 * It wakes up ten times a second. Then it asks whether the memory of another process is writable,
 * reads at PLACES places of that, and writes there: the system calls of a pass with so many bins
 * that changed, and no more.
 */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "profild/worker/process_memory.h"

#define BYTES (65536 * sizeof(unsigned short))

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* A process with memory of its own at @buf. */
static pid_t other(unsigned short *buf)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(buf, 0, BYTES);
	for (;;)
		pause();
}

static int pass(struct memory *m, uint64_t buf, int places)
{
	unsigned short count = 0;
	int err = 0;

	memory_forget(m);
	for (int i = 0; !err && i < places; i++) {
		uint64_t at = buf + (size_t)random() % BYTES / 2 * 2;

		err = memory_writable(m, at, sizeof(count));
		if (!err)
			err = memory_read(m, at, &count, sizeof(count));
		count++;
		if (!err)
			err = memory_write(m, at, &count, sizeof(count));
	}
	return err;
}

int main(int argc, char **argv)
{
	const struct timespec tenth = { 0, 100000000 };
	int seconds = argc == 3 ? atoi(argv[1]) : 0, places = argc == 3 ? atoi(argv[2]) : 0, err;
	unsigned short *buf = aligned_alloc(4096, BYTES);
	struct pollfd nothing = { .fd = -1 };
	struct memory *m = NULL;
	uint64_t before;

	if (seconds < 1 || places < 0 || !buf) {
		fputs("usage: passes SECONDS PLACES\n", stderr);
		return 2;
	}
	err = memory_open(&m, other(buf));
	before = cpu_ns();
	for (int i = 0; !err && i < 10 * seconds; i++) {
		ppoll(&nothing, 1, &tenth, NULL);
		err = pass(m, (uint64_t)(uintptr_t)buf, places);
	}
	if (err) {
		fprintf(stderr, "passes: the memory of another process: %s\n", strerror(-err));
		return 1;
	}
	printf("ns_per_s %llu\n", (unsigned long long)(cpu_ns() - before) / (unsigned int)seconds);
	return 0;
}
