/* calls.c - a -pg program that performs the actions of its arguments one after the other */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TURNS 200000u
#define THREADS 4

void _mcleanup(void);
int __profile_frequency(void);
extern void write_profiling(void) __attribute__((__weak__)); /* not in a shared libc */

static volatile unsigned long result;
static double seconds;
static long calls;

/* CPU time is spent in a function of its own for each thread. */
#define WORK(name)                                           \
	__attribute__((noinline)) static void name(void)     \
	{                                                    \
		for (unsigned int i = 0; i < TURNS; i++)     \
			__asm__ volatile("" : : : "memory"); \
	}
WORK(tenth)
WORK(two_tenths)
WORK(three_tenths)
WORK(four_tenths)

static void (*const work[THREADS])(void) = { tenth, two_tenths, three_tenths, four_tenths };

__attribute__((noinline)) static void leaf(void)
{
	__asm__ volatile("");
}

__attribute__((noinline)) static void call_leaf(void)
{
	for (long i = 0; i < calls; i++)
		leaf();
}

static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *run(void *number)
{
	long n = (long)number;

	call_leaf();
	while (used() < seconds * (double)(n + 1) / 10)
		work[n]();
	return NULL;
}

static void threads(void)
{
	pthread_t thread[THREADS];

	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, run, (void *)i);
	for (long i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

/* Returns 0 when @what is not an action. */
static int leave(const char *what)
{
	char dir[] = "/tmp/calls.XXXXXX";

	if (!strcmp(what, "nowhere"))
		return mkdtemp(dir) && !chdir(dir) && !rmdir(dir);
	if (!strcmp(what, "nobody"))
		return !setgid(65534) && !setuid(65534);
	return 0;
}

/* A child for which no fork handler runs; it must exit with 0. */
static int clone_raw(void)
{
	long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	int status;

	return pid ? waitpid((pid_t)pid, &status, 0) == pid && status == 0 : 1;
}

/* The process cannot map any more memory. */
static int limit_memory(void)
{
	const struct rlimit none = { 0, 0 };

	return setrlimit(RLIMIT_AS, &none) == 0;
}

/* The child waits for its parent's end, so it always ends after its parent. */
static int leave_terminal(void)
{
	pid_t parent = getpid();

	if (daemon(1, 1))
		return 0;
	while (getppid() == parent)
		sched_yield();
	return 1;
}

/* The child ends by _exit() after its parent, and counts nothing meanwhile. */
static int leave_idle_child(void)
{
	pid_t parent = getpid();

	if (fork())
		return 1;
	while (getppid() == parent)
		usleep(1000);
	_exit(0);
}

/* What a program asks of its own profile. Returns -1 when @what is not such an action. */
static int control(const char *what)
{
	if (!strcmp(what, "mcleanup"))
		return _mcleanup(), 1;
	if (!strcmp(what, "write"))
		return write_profiling ? write_profiling(), 1 : 0;
	if (!strcmp(what, "frequency"))
		return printf("%d\n", __profile_frequency()) > 0 && !fflush(stdout);
	if (!strcmp(what, "rename"))
		return !rename("gmon.out", "gmon.first");
	return -1;
}

static int act(const char *what)
{
	int ret = control(what);

	if (ret >= 0)
		return ret;
	if (!strcmp(what, "call"))
		call_leaf();
	else if (!strcmp(what, "threads"))
		threads();
	else if (!strcmp(what, "kill"))
		raise(SIGKILL);
	else if (!strcmp(what, "term"))
		raise(SIGTERM);
	else if (!strcmp(what, "_exit"))
		_exit(0);
	else if (!strcmp(what, "fork"))
		return fork() ? wait(NULL) > 0 : 1;
	else if (!strcmp(what, "clone"))
		return clone_raw();
	else if (!strcmp(what, "limit"))
		return limit_memory();
	else if (!strcmp(what, "idle"))
		return leave_idle_child();
	else if (!strcmp(what, "daemon"))
		return leave_terminal();
	else if (!strcmp(what, "wait"))
		return puts("waits") > 0 && !fflush(stdout) && getchar() != EOF;
	else if (!strcmp(what, "exec"))
		execlp("true", "true", NULL);
	else if (!strcmp(what, "pid"))
		return printf("%d\n", getpid()) > 0 && !fflush(stdout);
	else
		return leave(what);
	return 1;
}

/* usage: calls CALLS SECONDS ACTION...; prints the CPU time that it used */
int main(int argc, char **argv)
{
	struct rusage r;

	calls = argc > 1 ? atol(argv[1]) : 0;
	seconds = argc > 2 ? atof(argv[2]) : 0;
	for (int i = 3; i < argc; i++) {
		if (!act(argv[i]))
			return fprintf(stderr, "cannot do %s\n", argv[i]), 1;
	}
	getrusage(RUSAGE_SELF, &r);
	printf("%.3f\n", (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
				 1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec));
	return 0;
}
