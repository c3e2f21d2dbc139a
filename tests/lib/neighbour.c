/* neighbour.c - a well-behaved client, which hostile ones must not disturb */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/profil.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel_ticks.h"
#include "neighbour.h"
#include "profil.h"
#include "users.h"

#define NEIGHBOUR 60009
#define TURN_SPINS 1000000
#define REST_MS 20 /* leaves the CPUs to the test */

/* In memory shared with the test. */
static struct neighbour {
	unsigned short buf[LOOPS];
	int end;
	pid_t pid;
	int said[2]; /* a byte when it has begun, and one when it has finished */
	int gate[2]; /* closed when it shall exit */
} * neighbour;

static unsigned long ticks_of(struct neighbour *n)
{
	unsigned long sum = 0;

	if (profil_sync() < 0)
		_exit(2);
	for (int i = 0; i < LOOPS; i++)
		sum += n->buf[i];
	return sum;
}

/* All loops in turn, as one counter would be full after a minute. */
static void work(void)
{
	static int loop;

	loop_for(loop++ % LOOPS, TURN_SPINS);
}

/* Runs in the neighbour until it has been counted after the attack, too: never returns. */
static void live(struct neighbour *n)
{
	unsigned long before;
	char end;

	close(n->gate[1]);
	if (users_become(NEIGHBOUR) < 0 ||
	    profil(n->buf, sizeof(n->buf), loop_at(0), TICKS_SCALE_16) < 0 ||
	    write(n->said[1], "", 1) != 1)
		_exit(1);
	while (!__atomic_load_n(&n->end, __ATOMIC_RELAXED)) {
		work();
		poll(NULL, 0, REST_MS);
	}
	before = ticks_of(n);
	do
		work();
	while (ticks_of(n) == before);
	if (write(n->said[1], "", 1) != 1)
		_exit(2);
	_exit(read(n->gate[0], &end, 1) != 0);
}

static void hear(const char *what)
{
	char byte;

	cr_assert_eq(read(neighbour->said[0], &byte, 1), 1, "the neighbour has not %s", what);
}

void neighbour_start(const struct daemon *d)
{
	struct neighbour *n =
		mmap(NULL, sizeof(*n), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	(void)d; /* its socket is in the environment */
	cr_assert(n != MAP_FAILED && pipe2(n->said, O_CLOEXEC) == 0 &&
		  pipe2(n->gate, O_CLOEXEC) == 0);
	neighbour = n;
	pid = fork();
	cr_assert(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0)
		live(n);
	n->pid = pid;
	close(n->said[1]);
	close(n->gate[0]);
	hear("begun");
}

/* It is profiled, and each of its ticks is in its buffer. */
void neighbour_stop(const struct daemon *d)
{
	struct neighbour *n = neighbour;
	struct profil_msg_profile p;
	unsigned long ticks = 0;
	int status;

	__atomic_store_n(&n->end, 1, __ATOMIC_RELAXED);
	hear("finished");
	cr_assert(ticks_list(d, n->pid, &p), "the neighbour's profile has ended");
	for (int i = 0; i < LOOPS; i++)
		ticks += n->buf[i];
	cr_expect_eq(p.total, ticks + p.unmatched + p.lost, "%llu != %lu + %llu + %llu", p.total,
		     ticks, p.unmatched, p.lost);
	cr_expect_eq(p.lost, 0, "the neighbour lost %llu ticks", p.lost);
	close(n->gate[1]);
	cr_assert_eq(waitpid(n->pid, &status, 0), n->pid);
	cr_expect_eq(status, 0, "the neighbour ended with wait status 0x%x", status);
}
