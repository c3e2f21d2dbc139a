/* facts.c - the facts of a manual, each tested in a process of its own */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "facts.h"

#define CPU_S 20 /* a fact that waits for a sample in vain */
#define BURN_MS 400

enum { MISSED, HELD, SKIPPED };

static char reason[256];

void fact_missed(const char *what, int line)
{
	snprintf(reason, sizeof(reason), "line %d: %s", line, what);
}

int fact_skipped(const char *why)
{
	snprintf(reason, sizeof(reason), "%s", why);
	return SKIPPED;
}

/* Runs in the child: its exit status is the result, the reason goes through the pipe. */
static void try(const struct fact *f, int out)
{
	const struct rlimit most = { CPU_S, CPU_S };
	int verdict;

	setrlimit(RLIMIT_CPU, &most);
	verdict = f->holds();
	if (write(out, reason, strlen(reason)) < 0)
		verdict = MISSED;
	_exit(verdict);
}

static int verdict_of(int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	snprintf(reason, sizeof(reason), "killed by signal %d", WTERMSIG(status));
	return MISSED;
}

static int try_one(const struct fact *f)
{
	int ends[2], status = 0;
	ssize_t n;
	pid_t pid;

	fflush(stdout);
	if (pipe(ends) < 0 || (pid = fork()) < 0) {
		perror("pipe or fork");
		exit(2);
	}
	if (pid == 0)
		try(f, ends[1]);
	close(ends[1]);
	n = read(ends[0], reason, sizeof(reason) - 1);
	reason[n > 0 ? n : 0] = 0;
	close(ends[0]);
	waitpid(pid, &status, 0);
	return verdict_of(status);
}

int facts_try(const struct fact *facts)
{
	static const char *const words[] = { "FAIL", "ok", "skip" };
	int count[3] = { 0, 0, 0 };

	for (; facts->name; facts++) {
		int verdict = try_one(facts);

		if (verdict < MISSED || verdict > SKIPPED)
			verdict = MISSED;
		count[verdict]++;
		printf("%s %s%s%s\n", words[verdict], facts->name, *reason ? ": " : "", reason);
	}
	printf("%d passed, %d failed, %d skipped\n", count[HELD], count[MISSED], count[SKIPPED]);
	return count[MISSED] != 0;
}

int facts_live(void)
{
	const char *over = getenv("FACTS_OVER");

	return !over || strcmp(over, "replay") != 0;
}

__attribute__((__noinline__, __aligned__(HOT_BYTES))) void hot(unsigned long n)
{
	while (n--)
		__asm__ volatile("");
}

static long cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void burn(void)
{
	long end = cpu_ms() + BURN_MS;

	while (facts_live() && cpu_ms() < end)
		hot(1000000);
}

static void *page(int protection)
{
	char *p = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p, PAGE, protection) < 0) {
		perror("mmap");
		exit(2);
	}
	return p;
}

void *page_writable(void)
{
	return page(PROT_READ | PROT_WRITE);
}

void *page_read_only(void)
{
	return page(PROT_READ);
}

void *page_gone(void)
{
	return page(PROT_NONE);
}

unsigned long sum(const unsigned short *counter, size_t n)
{
	unsigned long total = 0;

	while (n--)
		total += *counter++;
	return total;
}
