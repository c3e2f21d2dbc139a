/* victim.c - a well-behaved user during an attack: the latency of its requests, its lost samples
 *
 * usage: victim starts SECONDS | victim samples SECONDS
 *
 * "starts" turns profil() on and off and prints the latency ("net": without the time that this
 * process and the daemon waited for a CPU, which any load causes); "samples" computes
 * under a profile for a third of the time and prints the profile's totals.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/hostile.h"
#include "profil.h"

#define TIMES_MAX 100000
#define PAUSE_NS 2000000
#define TURN_NS 10000000

static unsigned short buf[65536];
static uint64_t on[TIMES_MAX], off[TIMES_MAX], net[TIMES_MAX];

/* schedstat of this process and of the daemon; -1: unknown. */
static int schedstat[2] = { -1, -1 };

static void pause_ns(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	nanosleep(&t, NULL);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void print_times(const char *name, uint64_t *t, unsigned int n)
{
	if (!n)
		return;
	qsort(t, n, sizeof(*t), compare);
	printf("%s_p50 %llu\n%s_p99 %llu\n%s_max %llu\n", name, (unsigned long long)t[n / 2] / 1000,
	       name, (unsigned long long)t[n - 1 - n / 100] / 1000, name,
	       (unsigned long long)t[n - 1] / 1000);
}

/* The whole text, from the linker's symbol for its first address. */
extern char __executable_start[];

static int start(void)
{
	return profil(buf, sizeof(buf), (size_t)__executable_start, 65536);
}

static void open_schedstat(void)
{
	char path[64];

	schedstat[0] = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)peer_daemon());
	schedstat[1] = open(path, O_RDONLY | O_CLOEXEC);
}

/* The time that this process and the daemon's main thread have waited for a CPU so far. */
static uint64_t run_delay_ns(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < 2; i++) {
		unsigned long long delay = 0;
		char text[128];
		ssize_t n = pread(schedstat[i], text, sizeof(text) - 1, 0);

		text[n > 0 ? n : 0] = 0;
		sscanf(text, "%*u %llu", &delay);
		sum += delay;
	}
	return sum;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static int starts(uint64_t until)
{
	unsigned int n = 0, refused = 0, last = 0;

	open_schedstat();
	do {
		uint64_t delay = run_delay_ns(), began = now_ns(), between, stopping;
		int err = start();

		if (err) {
			refused++;
			last = (unsigned int)errno;
		}
		between = now_ns();
		net[n] = less(between - began, run_delay_ns() - delay);
		stopping = now_ns();
		if (profil(buf, 0, 0, 0) < 0)
			refused++;
		on[n] = between - began;
		off[n++] = now_ns() - stopping;
		pause_ns(PAUSE_NS);
	} while (n < TIMES_MAX && now_ns() < until);
	printf("starts %u\nrefused %u\nerror %u\n", n, refused, last);
	print_times("start", on, n);
	print_times("net", net, n);
	print_times("stop", off, n);
	return 0;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static volatile unsigned int sink;

static uint64_t work(uint64_t until_cpu_ns)
{
	uint64_t rounds = 0;

	for (; cpu_ns() < until_cpu_ns; rounds++) {
		for (unsigned int i = 0; i < 10000; i++)
			sink += i;
	}
	return rounds;
}

static uint64_t sum(void)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < sizeof(buf) / sizeof(*buf); i++)
		n += buf[i];
	return n;
}

static int samples(uint64_t until)
{
	struct profil_msg_profile p, after;
	uint64_t cpu, rounds = 0, binned = 0;

	if (start() < 0) {
		printf("refused 1\nerror %d\n", errno);
		return 0;
	}
	cpu = cpu_ns();
	while (now_ns() < until) {
		rounds += work(cpu_ns() + TURN_NS);
		pause_ns((uint64_t)2 * TURN_NS);
	}
	cpu = cpu_ns() - cpu;
	do { /* until no sample arrives while the buffer and the total are read */
		if (!peer_find(getpid(), &p)) {
			puts("gone 1");
			return 0;
		}
		if (profil_sync() < 0) {
			printf("refused 1\nerror %d\n", errno);
			break;
		}
		binned = sum();
	} while (peer_find(getpid(), &after) && after.total != p.total);
	printf("total %llu\nbinned %llu\nunmatched %llu\nlost %llu\n", (unsigned long long)p.total,
	       (unsigned long long)binned, (unsigned long long)p.unmatched,
	       (unsigned long long)p.lost);
	printf("tick_ns %llu\ncpu_ns %llu\nrounds %llu\n", (unsigned long long)p.tick_ns,
	       (unsigned long long)cpu, (unsigned long long)rounds);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t until = now_ns() + (uint64_t)((argc > 2 ? atof(argv[2]) : 1) * 1e9);

	if (argc > 1 && strcmp(argv[1], "starts") == 0)
		return starts(until);
	if (argc > 1 && strcmp(argv[1], "samples") == 0)
		return samples(until);
	fprintf(stderr, "usage: victim starts|samples SECONDS\n");
	return 2;
}
