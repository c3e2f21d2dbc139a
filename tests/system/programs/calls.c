/* calls.c - does what its arguments say, one after the other: what a -pg program may live through
 */
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

static volatile unsigned long result;
static double seconds;
static long calls;

/* Where the time goes: a function of its own for each thread. */
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

/* Returns 0 where @what is nothing to do. */
static int leave(const char *what)
{
	char dir[] = "/tmp/calls.XXXXXX";

	if (!strcmp(what, "nowhere"))
		return mkdtemp(dir) && !chdir(dir) && !rmdir(dir);
	if (!strcmp(what, "nobody"))
		return !setgid(65534) && !setuid(65534);
	return 0;
}

/* A child that no fork handler hears of; it must end well. */
static int clone_raw(void)
{
	long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	int status;

	return pid ? waitpid((pid_t)pid, &status, 0) == pid && status == 0 : 1;
}

/* There is no more memory than what it has. */
static int limit_memory(void)
{
	const struct rlimit none = { 0, 0 };

	return setrlimit(RLIMIT_AS, &none) == 0;
}

/* Who waits for its parent's end ends after it, however short its life is. */
static int leave_terminal(void)
{
	pid_t parent = getpid();

	if (daemon(1, 1))
		return 0;
	while (getppid() == parent)
		sched_yield();
	return 1;
}

static int act(const char *what)
{
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

/* usage: calls CALLS SECONDS WHAT...; says what CPU time it took */
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
