/* kernel_many.c - 32 processes at once, each with its own histogram: none mixes with another */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/profil.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel_ticks.h"
#include "profil.h"

#define PROCESSES LOOPS

/* One for each process, in memory that we see too. */
struct own {
	unsigned short count[LOOPS];
	struct loop_time time;
	pid_t pid;
};

static struct daemon d;
static struct own *own;
static int done[2]; /* a byte from each process that has looped */
static int gate[2]; /* its end lets them go */

static void start(void)
{
	static const char *args[] = { "--rate", TICKS_RATE, NULL };

	daemon_start(&d, NULL, args);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_many, .init = start, .fini = stop);

/* Runs in the child, in its own loop; its exit status tells what failed. */
static void child(unsigned int i)
{
	char end;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that runs out of time takes us along */
	close(gate[1]);
	if (profil(own[i].count, sizeof(own[i].count), loop_at(0), TICKS_SCALE_16) < 0)
		_exit(1);
	loop_timed(&own[i].time, i, TICKS_SPELL_NS);
	if (profil_sync() < 0)
		_exit(2);
	if (write(done[1], "", 1) != 1)
		_exit(3);
	close(done[1]); /* where a process fails, the last that does not ends the waiting */
	if (read(gate[0], &end, 1) != 0)
		_exit(3);
	_exit(sprofil(NULL, 0, NULL, 0) < 0 ? 4 : 0);
}

static void run_all(void)
{
	char byte;

	own = mmap(NULL, PROCESSES * sizeof(*own), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(own != MAP_FAILED && pipe(done) == 0 && pipe(gate) == 0);
	for (unsigned int i = 0; i < PROCESSES; i++) {
		pid_t pid = fork();

		cr_assert(pid >= 0, "fork: %s", strerror(errno));
		if (pid == 0)
			child(i);
		own[i].pid = pid;
	}
	close(done[1]);
	close(gate[0]);
	for (unsigned int i = 0; i < PROCESSES; i++)
		cr_assert_eq(read(done[0], &byte, 1), 1, "%u of %u processes came to an end", i,
			     PROCESSES);
}

static void reap_all(void)
{
	close(gate[1]);
	for (unsigned int i = 0; i < PROCESSES; i++) {
		int status;

		cr_assert_eq(waitpid(own[i].pid, &status, 0), own[i].pid);
		cr_expect_eq(status, 0, "process %u ended with wait status 0x%x", i, status);
	}
}

/*
 * A process gets its 250 ticks in 80 slices or so, each of which may have half a tick more or less:
 * a standard deviation of at most 5 of its count, and of 25 of the 8000 of all. 15 % of the one
 * are seven of those, 2 % of the other six.
 */
Test(kernel_many, each_of_32_counts_its_own_loop_alone)
{
	struct loop_time time = { 0 };
	unsigned long ticks = 0;

	run_all();
	for (unsigned int i = 0; i < PROCESSES; i++) {
		for (unsigned int k = 0; k < LOOPS; k++)
			cr_expect(k == i || own[i].count[k] == 0,
				  "process %u has %u ticks of process %u's loop", i,
				  own[i].count[k], k);
		ticks_expect(own[i].count[i], &own[i].time, TICKS_PERIOD_NS, 15, 0, "one");
		ticks += own[i].count[i];
		time.cpu_ns += own[i].time.cpu_ns;
		time.task_ns += own[i].time.task_ns;
	}
	ticks_expect(ticks, &time, TICKS_PERIOD_NS, 2, 0, "all");
	reap_all();
}

/*
 * All of them sleep by now, with the profile on. One that had just synced and was hit by a tick on
 * its way to sleep has one more unmatched; that LIST sees that tick half done takes another CPU and
 * a hundred nanoseconds: one run in a hundred thousand.
 */
Test(kernel_many, every_tick_of_32_is_binned_unmatched_or_lost)
{
	run_all();
	for (unsigned int i = 0; i < PROCESSES; i++) {
		struct profil_msg_profile p;

		cr_assert(ticks_list(&d, own[i].pid, &p), "process %u has no profile", i);
		cr_expect_eq(p.total, own[i].count[i] + p.unmatched + p.lost,
			     "process %u: %llu != %u + %llu + %llu", i, p.total, own[i].count[i],
			     p.unmatched, p.lost);
		cr_expect_eq(p.lost, 0, "process %u lost %llu", i, p.lost);
	}
	reap_all();
}
