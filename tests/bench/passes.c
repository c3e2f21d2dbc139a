/* passes.c - what a pass of the mirror costs a program that has nothing else to do
 *
 * It wakes up ten times a second. Then it asks whether the memory of another process is writable,
 * reads at PLACES places of that, and writes there: the system calls of a pass with so many bins
 * that changed, and no more.
 */
#include <fcntl.h>
#include <linux/types.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define BYTES (65536 * sizeof(unsigned short))

/* As in src/profild/memory.c. */
struct procmap_query {
	__u64 size;
	__u64 query_flags;
	__u64 query_addr;
	__u64 vma_start;
	__u64 vma_end;
	__u64 rest[8];
};
#define QUERY_VMA_WRITABLE 0x02
#define QUERY_PROCMAP _IOWR('f', 17, struct procmap_query)

static int die(const char *what)
{
	perror(what);
	return 1;
}

static int open_of(pid_t pid, const char *file, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	return open(path, flags | O_CLOEXEC);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int pass(int maps, int mem, uint64_t buf, int places)
{
	struct procmap_query q = { sizeof(q), QUERY_VMA_WRITABLE, buf, 0, 0, { 0 } };
	unsigned short count;

	if (places && ioctl(maps, QUERY_PROCMAP, &q) < 0)
		return -1;
	for (int i = 0; i < places; i++) {
		off_t at = (off_t)(buf + (size_t)random() % BYTES / 2 * 2);

		if (pread(mem, &count, 2, at) != 2)
			return -1;
		count++;
		if (pwrite(mem, &count, 2, at) != 2)
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct timespec tenth = { 0, 100000000 };
	int seconds = argc == 3 ? atoi(argv[1]) : 0, places = argc == 3 ? atoi(argv[2]) : 0;
	unsigned short *buf = aligned_alloc(4096, BYTES);
	struct pollfd nothing = { .fd = -1 };
	int mem, maps;
	uint64_t before;
	pid_t pid;

	if (seconds < 1 || places < 0 || !buf) {
		fputs("usage: passes SECONDS PLACES\n", stderr);
		return 2;
	}
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memset(buf, 0, BYTES);
		for (;;)
			pause();
	}
	mem = open_of(pid, "mem", O_RDWR);
	maps = open_of(pid, "maps", O_RDONLY);
	if (pid < 0 || mem < 0 || maps < 0)
		return die("a process to write to");
	before = cpu_ns();
	for (int i = 0; i < 10 * seconds; i++) {
		ppoll(&nothing, 1, &tenth, NULL);
		if (pass(maps, mem, (uint64_t)(uintptr_t)buf, places))
			return die("its memory");
	}
	printf("ns_per_s %llu\n", (unsigned long long)(cpu_ns() - before) / (unsigned int)seconds);
	return 0;
}
