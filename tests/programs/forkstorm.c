/* forkstorm.c - forks thousands of children while profiled, beside execs of unprofiled programs */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loops.h"

/* NULL unless this is linked with libprofil. */
__attribute__((__weak__)) int profil_sync(void);

#define OUTSTANDING 64 /* children at a time */
#define SYNC_EACH 16   /* one in so many children is forked by fork() and syncs */
#define EXEC_EACH 8    /* one in so many children execs */

/* At the same address in all images of this program, with space that shows stray writes. */
static struct {
	unsigned char before[4096];
	unsigned short count[LOOPS];
	unsigned char after[4096];
} arena;

/* Exit statuses of a child. */
enum { FINE, STRAY, WRITTEN, FAILED, OUTCOMES };

struct tally {
	unsigned long forks;
	unsigned long wraps;	     /* how often pids wrapped around */
	unsigned long end[OUTCOMES]; /* exit statuses of the children */
	unsigned long ticks;	     /* of children, in their own loops */
};

static struct tally *storm, *execs;
static unsigned long least_wraps; /* the storm ends after so many wraps, ... */
#define PATIENCE 10		  /* ... or after so many times the requested duration */
static char self[4096];
static char *victim_args[] = { self, (char *)"victim", NULL };

/* Some hundred microseconds at most: a child runs about as long as a fork takes. */
static void turn(unsigned int loop, unsigned long times)
{
	((void (*)(unsigned long))loop_at(loop))(times);
}

/* This image is not profiled: a byte that is not zero is a stray write. */
static int victim(void)
{
	const unsigned char *byte = (const unsigned char *)&arena;

	turn(1, 100000);
	for (size_t i = 0; i < sizeof(arena); i++) {
		if (byte[i])
			return WRITTEN;
	}
	return FINE;
}

/* Works in its loop; nothing else in its copy of the counters may change. */
static int child(unsigned long n)
{
	unsigned int loop = 1 + n % (LOOPS - 1);
	unsigned short before[LOOPS];

	if (n % EXEC_EACH == 1) {
		execv(self, victim_args);
		return FAILED;
	}
	memcpy(before, arena.count, sizeof(before));
	turn(loop, 50000 + n * 7919 % 200000);
	if (n % SYNC_EACH == 0 && profil_sync && profil_sync() < 0)
		return FAILED;
	for (unsigned int i = 0; i < LOOPS; i++) {
		if (i != loop && arena.count[i] != before[i])
			return STRAY;
	}
	for (size_t i = 0; i < sizeof(arena.before); i++) {
		if (arena.before[i] || arena.after[i])
			return WRITTEN;
	}
	__atomic_fetch_add(&storm->ticks, (unsigned long)(arena.count[loop] - before[loop]),
			   __ATOMIC_RELAXED);
	return FINE;
}

/* Reaps one child or all that have ended; @flags as of waitpid(). */
static int reap(struct tally *t, int flags)
{
	int status, n = 0;

	while (waitpid(-1, &status, flags) > 0) {
		t->end[WIFEXITED(status) && WEXITSTATUS(status) < OUTCOMES ? WEXITSTATUS(status)
									   : FAILED]++;
		n++;
		if (!(flags & WNOHANG))
			break;
	}
	return n;
}

static int is_over(const struct tally *t, uint64_t began_ns, uint64_t ns)
{
	uint64_t took = cpu_ns(CLOCK_MONOTONIC) - began_ns;

	return took >= ns && (t->wraps >= least_wraps || took >= PATIENCE * ns);
}

/* Forks @rate times a second, or as often as possible, until the storm ends. */
static void fork_on(struct tally *t, unsigned long rate, uint64_t ns, int (*fn)(unsigned long))
{
	uint64_t began = cpu_ns(CLOCK_MONOTONIC);
	int outstanding = 0;
	pid_t pid, last = 0;

	while (!is_over(storm, began, ns)) {
		outstanding -= reap(t, outstanding < OUTSTANDING ? WNOHANG : 0);
		if (t->forks * 1000000000 > (cpu_ns(CLOCK_MONOTONIC) - began) * rate) {
			usleep(500);
			continue;
		}
		/* libprofil syncs before a fork(), so that the child's copy has all counts. */
		pid = t->forks % SYNC_EACH ? _Fork() : fork();
		if (pid == 0)
			_exit(fn(t->forks));
		if (pid < 0 && errno == EAGAIN)
			continue; /* no pid is free */
		if (pid < 0)
			exit(FAILED);
		outstanding++;
		t->forks++;
		t->wraps += pid < last;
		last = pid;
	}
	while (outstanding > 0)
		outstanding -= reap(t, 0);
}

static int exec_victim(unsigned long n)
{
	execv(self, victim_args);
	return FAILED;
}

/* Runs in a process that is not profiled. */
static pid_t exec_on(unsigned long rate, uint64_t ns)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fork_on(execs, rate, ns, exec_victim);
		_exit(0);
	}
	return pid;
}

static void say(const char *what, const struct tally *t)
{
	printf("%s %lu wraps %lu fine %lu strays %lu written %lu failed %lu ticks %lu\n", what,
	       t->forks, t->wraps, t->end[FINE], t->end[STRAY], t->end[WRITTEN], t->end[FAILED],
	       t->ticks);
}

int main(int argc, char **argv)
{
	uint64_t ns = (uint64_t)(1e9 * (argc > 1 ? atof(argv[1]) : 1));
	unsigned long rate = argc > 2 ? strtoul(argv[2], NULL, 10) : 2000, binned = 0;
	struct tally *tally = mmap(NULL, 2 * sizeof(*tally), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char end;
	pid_t pid;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 || tally == MAP_FAILED)
		return perror("forkstorm"), 1;
	if (argc > 1 && !strcmp(argv[1], "victim"))
		return victim();
	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
		personality(ADDR_NO_RANDOMIZE);
		execv(self, argv);
		return perror(self), 1;
	}
	least_wraps = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	storm = &tally[0];
	execs = &tally[1];
	pid = exec_on(rate / 4, ns);
	if (pid < 0 || profil(arena.count, sizeof(arena.count), loop_at(0), 2 * 65536 / LOOP_BYTES))
		return perror("profil"), 1;
	fork_on(storm, rate, ns, child);
	waitpid(pid, NULL, 0);
	if (profil_sync && profil_sync() < 0)
		return perror("profil_sync"), 1;
	for (unsigned int i = 0; i < LOOPS; i++)
		binned += arena.count[i];
	say("forks", storm);
	say("execs", execs);
	printf("pid %d binned %lu\n", (int)getpid(), binned);
	fflush(stdout);
	return read(STDIN_FILENO, &end, 1) < 0; /* stays to be looked at */
}
