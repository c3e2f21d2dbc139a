/* deeds.c - causes a known number of events: "deeds WHAT N [FILE]"
 *
 * Prints how many there were, as the kernel accounts them to this process: page faults during the
 * work, or context switches from the process's start on. Exits with 77, and says why, where they
 * cannot be caused.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int cannot(const char *why)
{
	puts(why);
	exit(77);
}

static struct rusage used(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return r;
}

/* A fault at each page. */
__attribute__((noipa)) void write_pages(volatile char *at, size_t n, size_t page)
{
	for (size_t i = 0; i < n; i++)
		at[i * page] = 1;
}

__attribute__((noipa)) void read_pages(const volatile char *at, size_t n, size_t page)
{
	for (size_t i = 0; i < n; i++)
		(void)at[i * page];
}

static long minor(size_t n, size_t page)
{
	void *at = mmap(NULL, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long before;

	if (at == MAP_FAILED || madvise(at, n * page, MADV_NOHUGEPAGE))
		cannot("no memory without huge pages");
	write_pages(at, 0, page);
	before = used().ru_minflt;
	write_pages(at, n, page);
	return used().ru_minflt - before;
}

/* Writes @n pages to @path, and drops them from the page cache. */
static int uncached_file(const char *path, size_t n, size_t page)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char *block = malloc(page);

	memset(block, 1, page);
	for (size_t i = 0; i < n; i++) {
		if (write(fd, block, page) != (ssize_t)page)
			cannot("the file cannot be written");
	}
	free(block);
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		cannot("the file cannot be dropped from the page cache");
	return fd;
}

static long major(size_t n, size_t page, const char *path)
{
	int fd = uncached_file(path, n, page);
	unsigned char *cached = malloc(n);
	char *at = mmap(NULL, n * page, PROT_READ, MAP_SHARED, fd, 0);
	long before;

	/* MADV_RANDOM: no page is read ahead. */
	if (at == MAP_FAILED || madvise(at, n * page, MADV_RANDOM) ||
	    mincore(at, n * page, cached) || memchr(cached, 1, n))
		cannot("the file stays in the page cache");
	read_pages(at, 0, page);
	before = used().ru_majflt;
	read_pages(at, n, page);
	return used().ru_majflt - before;
}

/* A timer that expires at once causes no context switch. */
static void sleep_times(size_t n)
{
	const struct timespec ts = { 0, 1000 };
	long end = used().ru_nvcsw + (long)n;

	while (used().ru_nvcsw < end)
		nanosleep(&ts, NULL);
}

static long switches(void)
{
	struct rusage r = used();

	return r.ru_nvcsw + r.ru_nivcsw;
}

/* Those before main() are not counted: the process may have waited for its start. */
static long sleeps(size_t n)
{
	long before = switches();

	sleep_times(n);
	return switches() - before;
}

/* The next CPU after @cpu on which the process may run. */
static int next_cpu(const cpu_set_t *may, int cpu)
{
	do
		cpu = (cpu + 1) % CPU_SETSIZE;
	while (!CPU_ISSET(cpu, may));
	return cpu;
}

static void move_to(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) || sched_getcpu() != cpu)
		cannot("the process cannot choose its CPU");
}

struct sleeper {
	pthread_t thread;
	int input;
	pid_t tid; /* 0: it has not begun */
};

static void *wait_for_end(void *arg)
{
	struct sleeper *s = arg;
	char byte;

	__atomic_store_n(&s->tid, gettid(), __ATOMIC_RELAXED);
	return read(s->input, &byte, 1) < 0 ? s : NULL;
}

static int is_asleep(const struct sleeper *s)
{
	pid_t tid = __atomic_load_n(&s->tid, __ATOMIC_RELAXED);
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	f = tid ? fopen(path, "r") : NULL;
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (f)
		fclose(f);
	return state == 'S';
}

/* Threads that sleep at the same time. */
static long crowd(size_t n)
{
	struct sleeper *sleeper = calloc(n, sizeof(*sleeper));
	pthread_attr_t attr;
	int input[2];

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	if (pipe(input))
		cannot("no pipe");
	for (size_t i = 0; i < n; i++) {
		sleeper[i].input = input[0];
		if (pthread_create(&sleeper[i].thread, &attr, wait_for_end, &sleeper[i]))
			cannot("no room for so many threads");
	}
	for (size_t i = 0; i < n; i++) {
		while (!is_asleep(&sleeper[i]))
			sched_yield();
	}
	close(input[1]);
	for (size_t i = 0; i < n; i++)
		pthread_join(sleeper[i].thread, NULL);
	free(sleeper);
	return (long)n;
}

/* Each migration is a context switch; as many of these are none. */
static long migrate(size_t n)
{
	cpu_set_t may;
	int cpu;

	if (sched_getaffinity(0, sizeof(may), &may) || CPU_COUNT(&may) < 2)
		cannot("there is one CPU only");
	cpu = next_cpu(&may, -1);
	move_to(cpu);
	for (size_t i = 0; i < n; i++) {
		cpu = next_cpu(&may, cpu);
		move_to(cpu);
	}
	sleep_times(n);
	return (long)n;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	long count;

	if (!strcmp(what, "minor"))
		count = minor(n, page);
	else if (!strcmp(what, "major") && argc > 3)
		count = major(n, page, argv[3]);
	else if (!strcmp(what, "crowd"))
		count = crowd(n);
	else if (!strcmp(what, "migrate"))
		count = migrate(n);
	else if (!strcmp(what, "sleep"))
		count = sleeps(n);
	else
		return 2;
	printf("%ld\n", count);
	return 0;
}
