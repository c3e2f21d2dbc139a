/* kernel_full.c - what has an end: who comes too late is told so, and who is there goes on */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/profil.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/layout.h"
#include "core/scope.h"
#include "core/wire.h"
#include "kernel_ticks.h"
#include "neighbour.h"
#include "profil.h"

#define REGIONS 4096 /* PROFIL_MAX of sprofil */

static struct daemon d;
static int begun[2]; /* a byte from each process: 0, its profile is on, or 1 */
static int gate[2];  /* its end lets them go */

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

/* Runs in a child: says whether its profile is on; if not, ends with the errno. */
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

/* @n of them fill it; one more gets @err; when they have gone, there is room again. */
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
	cr_expect_eq(exit_status(in_child(fn)), err, "one more than there may be");
	close(gate[1]);
	for (unsigned int i = 0; i < n; i++)
		cr_expect_eq(exit_status(pid[i]), 0, "one of those who were there");
	cr_assert_eq(pipe2(gate, O_CLOEXEC), 0);
}

/* A grace period passes before it is free again. */
static void expect_room(int (*fn)(void))
{
	int err = EAGAIN;

	alarm(60);
	close(gate[1]);
	while (err == EAGAIN)
		err = exit_status(in_child(fn));
	alarm(0);
	cr_expect_eq(err, 0, "it stays full: %s", strerror(err));
}

/* The neighbour has one of each. */
Test(kernel_full, of_profiles, .timeout = 300)
{
	fill(with_one_region, PROFIL_MAX_TARGETS - 1, EAGAIN);
	expect_room(with_one_region);
	neighbour_stop(&d);
}

Test(kernel_full, of_regions)
{
	fill(with_many_regions, PROFIL_MAX_REGIONS / REGIONS - 1, EAGAIN);
	expect_room(with_many_regions);
	neighbour_stop(&d);
}

/* --- chunks of counters ------------------------------------------------------------------------
 */

#define CHUNKS 32

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* To take one from where the kernel finds it takes a grace period, for which nobody waits. */
Test(kernel_full, chunks_go_in_the_background, .timeout = 60)
{
	size_t bytes = (size_t)CHUNKS * PROFIL_CHUNK_COUNTERS * sizeof(unsigned short);
	unsigned short *buf =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct profil_msg_status status;
	uint64_t began, answered, gone;

	cr_assert(buf != MAP_FAILED);
	cr_assert_eq(profil(buf, bytes, loop_at(0), TICKS_SCALE_16), 0, "%s", strerror(errno));
	client_status(&d, &status);
	cr_expect_geq(status.chunks, CHUNKS);

	began = now_ns();
	cr_assert_eq(profil(buf, 0, 0, 0), 0);
	client_status(&d, &status);
	answered = now_ns();
	while (status.chunks > 2)
		client_status(&d, &status);
	gone = now_ns();
	cr_expect_lt(answered - began, (gone - began) / 2,
		     "the next to ask was answered after %.1f ms, the last chunk went after %.1f",
		     (double)(answered - began) / 1e6, (double)(gone - began) / 1e6);
	munmap(buf, bytes);
	neighbour_stop(&d);
}

/* --- readers -----------------------------------------------------------------------------------
 */

/* One process has one line of the table, for as many profiles as there are entries in it. */
Test(kernel_full, of_readers_of_one_process)
{
	struct profil_msg_reply reply;
	unsigned int granted = 0;
	int sock[PROFIL_BUCKET_ENTRIES + 1], err = 0;

	for (unsigned int i = 0; i <= PROFIL_BUCKET_ENTRIES; i++) {
		sock[i] = client_open(&d, NULL);
		err = client_attach(sock[i], 0, &reply);
		granted += err == 0;
	}
	cr_expect_eq(err, EAGAIN, "one more than there may be: %s", strerror(err));
	cr_expect_eq(granted, PROFIL_BUCKET_ENTRIES);
	for (unsigned int i = 0; i <= PROFIL_BUCKET_ENTRIES; i++)
		close(sock[i]);
	neighbour_stop(&d);
}

static __u64 told; /* of so many ticks */

/* Takes one message; says whether it is the answer, in @reply, or else counts the ticks in it. */
static int is_answer(int sock, struct profil_msg_reply *reply)
{
	static union {
		struct profil_header h;
		struct profil_msg_reply reply;
		struct profil_msg_events events;
		char space[PROFIL_MSG_MAX];
	} in;

	cr_assert_eq(wire_recv(sock, &in, sizeof(in), NULL, NULL), 0);
	if (in.h.type == PROFIL_MSG_REPLY) {
		*reply = in.reply;
		return 1;
	}
	for (unsigned int i = 0; i < in.h.count; i++)
		told += in.events.event[i].kind == PROFIL_EVENT_RAW;
	return 0;
}

static void ask(int sock, unsigned int type, struct profil_msg_reply *reply)
{
	struct profil_header h;

	wire_header(&h, type, sizeof(h), 0, 0);
	cr_assert_eq(wire_send(sock, &h, NULL, 0), 0);
	while (!is_answer(sock, reply))
		;
}

/* More ticks than the ring holds, while nobody empties it: each is told of, or lost and counted. */
Test(kernel_full, of_events)
{
	__cleanup(closep) int sock = client_open(&d, NULL);
	struct profil_msg_reply before, full, after;
	struct loop_time t = { 0 };
	__u64 n = PROFIL_RING_BYTES / sizeof(struct profil_event);

	cr_assert_eq(client_attach(sock, 100000, &before), 0);
	kill(d.pid, SIGSTOP);
	cr_assert_eq(waitpid(d.pid, NULL, WUNTRACED), d.pid);
	loop_timed(&t, 0, 2 * n * 100000);
	kill(d.pid, SIGCONT);
	ask(sock, PROFIL_MSG_STATS, &full);
	cr_expect_gt(full.lost, 0, "none of %llu ticks was lost: the ring was not full",
		     full.total);
	loop_timed(&t, 0, 50000000);
	ask(sock, PROFIL_MSG_DETACH, &after);
	cr_expect_eq(after.total, after.unmatched + after.lost + after.raw);
	alarm(20);
	while (told < after.raw)
		is_answer(sock, &full);
	alarm(0);
	cr_expect_eq(told, after.raw);
	close(steal_fd(sock));
	neighbour_stop(&d);
}
