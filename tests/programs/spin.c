/* spin.c - uses CPU time in known functions */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Each step waits for the one before it: a loop takes the time of its steps wherever it lies. */
#define CHAIN(n)                                     \
	for (unsigned long x = 1, i = (n); i; i--) { \
		x = x * 2862933555777941757ul + 1;   \
		__asm__ volatile("" : "+r"(x));      \
	}

__attribute__((noipa)) void hot(unsigned long n)
{
	CHAIN(7 * n);
}

__attribute__((noipa)) void cold(unsigned long n)
{
	CHAIN(3 * n);
}

static double cpu_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * Rounds of one length could keep step with the ticks. Threads that take turns with the timer are
 * hit at the same moments of their lives, each of them: with a @seed of their own, in other places.
 */
static void split(double seconds, unsigned long seed)
{
	double end = cpu_s(CLOCK_THREAD_CPUTIME_ID) + seconds;

	for (unsigned long n = seed; cpu_s(CLOCK_THREAD_CPUTIME_ID) < end;
	     n = n * 2862933555777941757ul + 1) {
		hot(5000 + (n >> 50));
		cold(5000 + (n >> 50));
	}
}

static double thread_seconds;

static void *thread(void *seed)
{
	split(thread_seconds, (unsigned long)seed);
	return NULL;
}

static void threads(double seconds)
{
	pthread_t t[4];

	thread_seconds = seconds;
	for (unsigned long i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, thread, (void *)(i + 1));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static void children(double seconds)
{
	for (unsigned long i = 0; i < 4; i++) {
		if (!fork()) {
			split(seconds, i + 1);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
}

/* A library that comes when the profile is well under way. */
static void late(double seconds, const char *library)
{
	void (*in_library)(double);
	void *handle;

	split(seconds / 4, 1);
	handle = dlopen(library, RTLD_NOW);
	in_library = handle ? (void (*)(double))dlsym(handle, "in_library") : NULL;
	if (!in_library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	in_library(seconds);
}

/* Code that no file holds: a loop of as many steps as its argument says. */
static void generated(double seconds)
{
#if defined(__x86_64__)
	static const unsigned char code[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
#elif defined(__aarch64__)
	static const unsigned int code[] = { 0xf1000400, 0x54ffffe1, 0xd65f03c0 };
#endif
	double end = cpu_s(CLOCK_THREAD_CPUTIME_ID) + seconds;
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(at, code, sizeof(code));
	mprotect(at, 4096, PROT_READ | PROT_EXEC);
	__builtin___clear_cache(at, (char *)at + sizeof(code));
	while (cpu_s(CLOCK_THREAD_CPUTIME_ID) < end)
		((void (*)(unsigned long))at)(100000);
}

/* Kernel mode, mostly. */
static void calls(double seconds)
{
	double end = cpu_s(CLOCK_THREAD_CPUTIME_ID) + seconds;
	static char buf[1 << 20];
	FILE *f = fopen("/dev/zero", "r");

	setbuf(f, NULL);
	while (cpu_s(CLOCK_THREAD_CPUTIME_ID) < end) {
		if (fread(buf, sizeof(buf), 1, f) != 1)
			exit(1);
	}
}

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[1] : "";
	double seconds = argc > 2 ? atof(argv[2]) : 0;

	if (!strcmp(how, "split"))
		split(seconds, 1);
	else if (!strcmp(how, "threads"))
		threads(seconds);
	else if (!strcmp(how, "children"))
		children(seconds);
	else if (!strcmp(how, "late") && argc > 3)
		late(seconds, argv[3]);
	else if (!strcmp(how, "generated"))
		generated(seconds);
	else if (!strcmp(how, "calls"))
		calls(seconds);
	else
		return 2;
	return 0;
}
