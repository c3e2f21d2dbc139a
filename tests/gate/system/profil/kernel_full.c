/* kernel_full.c - full tables: the next request fails with EAGAIN, and existing profiles keep
 * counting */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/profil.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/shared_maps.h"
#include "base/cleanup.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/neighbour.h"
#include "tests/lib/observer.h"
#include "profil.h"

#define REGIONS 4096 /* PROFIL_MAX of sprofil */

static struct daemon d;
static int begun[2]; /* a byte from each process: 0 when its profile is on, else 1 */
static int gate[2];  /* closed when the processes shall exit */

static void start(void)
{
	static const char *args[] = { "--rate", TICKS_RATE, NULL };

	daemon_start(&d, NULL, args);
	neighbour_start(&d);
	cr_assert(pipe2(begun, O_CLOEXEC) == 0 && pipe2(gate, O_CLOEXEC) == 0);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_full, .init = start, .fini = stop);

/* Runs in a child: reports whether its profile is on; returns the errno when it is not. */
static int stay(int err)
{
	int why = err ? errno : 0;
	char failed = why != 0, end;

	if (write(begun[1], &failed, 1) != 1)
		return EPIPE;
	if (why)
		return why;
	close(gate[1]);
	return read(gate[0], &end, 1) != 0;
}

static int with_one_region(void)
{
	static unsigned short buf[LOOPS];

	return stay(profil(buf, sizeof(buf), loop_at(0), TICKS_SCALE_16));
}

static int with_many_regions(void)
{
	static struct prof prof[REGIONS];
	static unsigned short buf[REGIONS];

	for (unsigned int i = 0; i < REGIONS; i++)
		prof[i] = (struct prof){ buf + i, sizeof(buf[i]), 0x1000ul * i, 65536 };
	return stay(sprofil(prof, REGIONS, NULL, PROF_USHORT));
}

static pid_t in_child(int (*fn)(void))
{
	pid_t pid = fork();

	cr_assert(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(fn());
	}
	return pid;
}

static int exit_status(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "a process ended with wait status 0x%x", status);
	return WEXITSTATUS(status);
}

/* @n processes fill the table, and one more gets @err. All exit at the end. */
static void fill(int (*fn)(void), unsigned int n, int err)
{
	static pid_t pid[PROFIL_MAX_TARGETS];

	close(begun[0]);
	cr_assert_eq(pipe2(begun, O_CLOEXEC), 0);
	for (unsigned int i = 0; i < n; i++) {
		char failed;

		pid[i] = in_child(fn);
		cr_assert_eq(read(begun[0], &failed, 1), 1);
		cr_assert(!failed, "%u of %u: %s", i + 1, n, strerror(exit_status(pid[i])));
	}
	cr_expect_eq(exit_status(in_child(fn)), err, "one more than the limit");
	close(gate[1]);
	for (unsigned int i = 0; i < n; i++)
		cr_expect_eq(exit_status(pid[i]), 0, "a process below the limit");
	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
}

/* Slots are free again after an RCU grace period. */
static void expect_room(int (*fn)(void))
{
	int err = EAGAIN;

	close(gate[1]);
	while (err == EAGAIN)
		err = exit_status(in_child(fn));
	cr_expect_eq(err, 0, "the table stays full: %s", strerror(err));
}

/* The neighbour has one profile and one region. */
Test(kernel_full, profiles_beyond_the_limit_get_EAGAIN)
{
	fill(with_one_region, PROFIL_MAX_TARGETS - 1, EAGAIN);
	expect_room(with_one_region);
	neighbour_stop(&d);
}

Test(kernel_full, regions_beyond_the_limit_get_EAGAIN)
{
	fill(with_many_regions, PROFIL_MAX_REGIONS / REGIONS - 1, EAGAIN);
	expect_room(with_many_regions);
	neighbour_stop(&d);
}

/* --- chunks of counters ----------------------------------------------------------------------- */

#define CHUNKS 32

Test(kernel_full, chunks_of_a_stopped_profile_are_released)
{
	size_t bytes = (size_t)CHUNKS * PROFIL_CHUNK_COUNTERS * sizeof(unsigned short);
	unsigned short *buf =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct profil_msg_status status;

	cr_assert(buf != MAP_FAILED);
	cr_assert_eq(profil(buf, bytes, loop_at(0), TICKS_SCALE_16), 0, "%s", strerror(errno));
	client_status(&d, &status);
	cr_expect_geq(status.chunks, CHUNKS);
	cr_assert_eq(profil(buf, 0, 0, 0), 0);
	while (status.chunks > 2)
		client_status(&d, &status);
	munmap(buf, bytes);
	neighbour_stop(&d);
}

/* --- attachments ------------------------------------------------------------------------------ */

/* A process has two buckets of the table: it can have as many attachments as these have entries. */
#define ATTACHMENTS (2 * PROFIL_BUCKET_ENTRIES)

Test(kernel_full, attachments_to_one_process_beyond_the_limit_get_EAGAIN)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, 0);
	struct observer o[ATTACHMENTS + 1];
	unsigned int granted = 0;
	int err = 0;

	ask.places = 1024;
	ask.images = 64;
	for (unsigned int i = 0; i <= ATTACHMENTS; i++) {
		cr_assert_eq(observer_open(&o[i], &d, &ask), 0);
		err = observer_add(&o[i], getpid());
		granted += err == 0;
	}
	cr_expect_eq(err, EAGAIN, "one more than the limit: %s", strerror(err));
	cr_expect_eq(granted, ATTACHMENTS);
	for (unsigned int i = 0; i <= ATTACHMENTS; i++)
		observer_close(&o[i]);
	neighbour_stop(&d);
}
