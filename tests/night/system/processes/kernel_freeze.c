/* kernel_freeze.c - stopped processes, offline CPUs and a clock that is set: no tick is lost or
 * added */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/profil.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/lib/kernel_ticks.h"
#include "profil.h"

DAEMON_SUITE(kernel_freeze, "--rate", TICKS_RATE);

/* A process that works until @end is set, in memory shared with the test. */
static struct worker {
	unsigned short buf[LOOPS];
	struct loop_time time;
	int end;
} * worker;

static int said[2], gate[2];

/* Runs in the worker: never returns. */
static void work(struct worker *w)
{
	char end;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(gate[1]);
	if (profil(w->buf, sizeof(w->buf), loop_at(0), TICKS_SCALE_16))
		_exit(1);
	while (!__atomic_load_n(&w->end, __ATOMIC_RELAXED))
		loop_timed(&w->time, 5, 20000000);
	if (profil_sync() || write(said[1], "", 1) != 1)
		_exit(2);
	_exit(read(gate[0], &end, 1) != 0);
}

static pid_t worker_start(void)
{
	pid_t pid;

	worker = mmap(NULL, sizeof(*worker), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	cr_assert(worker != MAP_FAILED && pipe2(said, O_CLOEXEC) == 0 &&
		  pipe2(gate, O_CLOEXEC) == 0);
	pid = fork();
	cr_assert(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0)
		work(worker);
	return pid;
}

/* Waits until the worker has 200 more ticks. */
static void worker_works(void)
{
	unsigned short *counter = &worker->buf[5];
	unsigned int seen = __atomic_load_n(counter, __ATOMIC_RELAXED);

	alarm(60);
	while (__atomic_load_n(counter, __ATOMIC_RELAXED) < seen + 200)
		poll(NULL, 0, 10);
	alarm(0);
}

/*
 * Ends the worker and checks its count: several hundred ticks, in slices of 3 ms on a busy machine,
 * have a standard deviation of at most 10; 2 % and 40 ticks are more than four of those.
 */
static void worker_ends(pid_t pid)
{
	struct profil_msg_profile p;
	char byte;
	int status;

	__atomic_store_n(&worker->end, 1, __ATOMIC_RELAXED);
	cr_assert_eq(read(said[0], &byte, 1), 1, "the worker did not finish");
	cr_assert(ticks_list(&d, pid, &p), "its profile has ended");
	cr_expect_eq(p.total, worker->buf[5] + p.unmatched + p.lost, "%llu != %u + %llu + %llu",
		     p.total, worker->buf[5], p.unmatched, p.lost);
	cr_expect_eq(p.lost, 0, "%llu ticks are lost", p.lost);
	ticks_expect(worker->buf[5], &worker->time, TICKS_PERIOD_NS, 2, 40, "the worker");
	close(gate[1]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect_eq(status, 0, "the worker ended with wait status 0x%x", status);
}

/* The stopped worker gets no tick, not even when the next daemon takes over its profile. */
static void expect_no_ticks(void)
{
	unsigned int seen;

	ticks_await_mirror(); /* the ticks from before the stop are written */
	seen = worker->buf[5];
	daemon_kill(&d);
	daemon_restart(&d);
	ticks_await_mirror();
	cr_expect_eq(worker->buf[5], seen, "the stopped worker got %u ticks",
		     worker->buf[5] - seen);
}

Test(kernel_freeze, a_stopped_process_keeps_its_counts)
{
	pid_t pid = worker_start();

	worker_works();
	kill(pid, SIGSTOP);
	cr_assert_eq(waitpid(pid, NULL, WUNTRACED), pid);
	expect_no_ticks();
	kill(pid, SIGCONT);
	worker_works();
	worker_ends(pid);
}

static void write_to(const char *path, const char *text)
{
	__cleanup(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s: %s", path,
		  strerror(errno));
}

/* --- a frozen cgroup -------------------------------------------------------------------------- */

static char group[160];

static void group_write(const char *file, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", group, file);
	write_to(path, text);
}

/* Makes a cgroup; all mounts of cgroup2 show the same hierarchy. */
static void group_make(void)
{
	char root[128];

	snprintf(root, sizeof(root), "%s/cgroup", d.dir);
	cr_assert(mkdir(root, 0700) == 0 && unshare(CLONE_NEWNS) == 0 &&
			  mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0,
		  "cannot make a mount namespace: %s", strerror(errno));
	if (mount("none", root, "cgroup2", 0, NULL) < 0)
		cr_skip_test("this kernel has no cgroup2");
	snprintf(group, sizeof(group), "%s/profil-test-%d", root, (int)getpid());
	cr_assert_eq(mkdir(group, 0700), 0, "mkdir %s: %s", group, strerror(errno));
}

static void group_await(const char *state)
{
	char path[256], text[256] = "";
	struct pollfd event = { .events = POLLPRI };

	snprintf(path, sizeof(path), "%s/cgroup.events", group);
	event.fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert(event.fd >= 0, "%s: %s", path, strerror(errno));
	alarm(60);
	while (pread(event.fd, text, sizeof(text) - 1, 0) > 0 && !strstr(text, state))
		poll(&event, 1, -1);
	alarm(0);
	close(event.fd);
}

Test(kernel_freeze, a_frozen_process_keeps_its_counts)
{
	char number[16];
	pid_t pid;

	group_make();
	pid = worker_start();
	snprintf(number, sizeof(number), "%d", (int)pid);
	group_write("cgroup.procs", number);
	worker_works();
	group_write("cgroup.freeze", "1");
	group_await("frozen 1");
	expect_no_ticks();
	group_write("cgroup.freeze", "0");
	worker_works();
	worker_ends(pid);
	group_await("populated 0");
	cr_expect_eq(rmdir(group), 0, "rmdir %s: %s", group, strerror(errno));
}

/* --- changes of the whole machine, only with PROFIL_TEST_UPHEAVAL ----------------------------- */

static void need_upheaval(const char *what)
{
	const char *allowed = getenv("PROFIL_TEST_UPHEAVAL");

	if (!allowed || !strstr(allowed, what))
		cr_skip_test("it would affect the whole machine; PROFIL_TEST_UPHEAVAL=%s allows it",
			     what);
}

static void restart_with(const char *clock)
{
	const char *with[] = { "--rate", TICKS_RATE, "--clock", clock, NULL };

	daemon_stop(&d);
	daemon_start(&d, NULL, with);
}

/* The last CPU goes offline while the worker runs on it, comes back, and counts again. */
static void cpu_goes_and_comes(const char *clock)
{
	long last = sysconf(_SC_NPROCESSORS_CONF) - 1;
	char path[128];
	cpu_set_t there;
	pid_t pid;

	need_upheaval("cpus");
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld/online", last);
	if (last < 1 || access(path, W_OK) < 0)
		cr_skip_test("no CPU can be taken offline");
	restart_with(clock);
	CPU_ZERO(&there);
	CPU_SET((size_t)last, &there);
	pid = worker_start();
	cr_assert_eq(sched_setaffinity(pid, sizeof(there), &there), 0, "%s", strerror(errno));
	worker_works();
	write_to(path, "0");
	worker_works();
	write_to(path, "1");
	cr_assert_eq(sched_setaffinity(pid, sizeof(there), &there), 0, "%s", strerror(errno));
	worker_works();
	worker_ends(pid);
}

Test(kernel_freeze, a_cpu_counts_again_after_it_was_offline_with_cpu_clock)
{
	cpu_goes_and_comes("cpu-clock");
}

Test(kernel_freeze, a_cpu_counts_again_after_it_was_offline_with_either_clock)
{
	cpu_goes_and_comes("auto");
}

static void step_clock(time_t seconds)
{
	struct timespec t;

	cr_assert_eq(clock_gettime(CLOCK_REALTIME, &t), 0);
	t.tv_sec += seconds;
	cr_assert_eq(clock_settime(CLOCK_REALTIME, &t), 0, "clock_settime: %s", strerror(errno));
}

/* The time of day is set an hour forward and back. */
Test(kernel_freeze, setting_the_clock_changes_no_count)
{
	pid_t pid;

	need_upheaval("clock");
	pid = worker_start();
	worker_works();
	step_clock(3600);
	worker_works();
	step_clock(-3600);
	worker_works();
	worker_ends(pid);
}
