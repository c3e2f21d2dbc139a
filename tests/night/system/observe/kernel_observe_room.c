/* kernel_observe_room.c - a request for a table does not wait for room without end */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/wire.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/observer.h"
#include "tests/lib/users.h"

#define ALICE 61001
#define SECOND 1000000000ull

DAEMON_SUITE(kernel_observe_room, "--rate", TICKS_RATE, "--user-tables", "4", "--user-connections",
	     "100");

static struct profil_msg_observe ask_processes(void)
{
	return observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
}

#define TURNS 600
#define TURN_US 100000

/* Opens a small table, ends it, and keeps it mapped. */
static int end_one(struct observer *ended)
{
	struct profil_msg_observe small = ask_processes();
	int err;

	small.places = small.images = small.groups = 1;
	err = observer_open(ended, &d, &small);
	close(ended->sock);
	ended->sock = -1;
	usleep(TURN_US); /* the daemon has read of it */
	return err;
}

/* The daemon waits for a table that has ended, but for so long at most. */
#define ENDING_S 1

/* Asks for @ask in a child, whose exit status is the errno. */
static pid_t ask_in_child(const struct profil_msg_observe *ask)
{
	struct observer other;
	pid_t pid = fork();

	if (!pid)
		_exit(observer_open(&other, &d, ask));
	return pid;
}

/*
 * Runs as ALICE, who has a large table and ends a small one ten times a second: a table is always
 * about to give room, and never enough. Returns the errno of a request for another large one. If a
 * turn is as late as ENDING_S, no table was about to give room, and the request is made again.
 */
static int observe_without_room(unsigned int unused)
{
	struct profil_msg_observe large = ask_processes();
	struct observer kept, ended[2];
	uint64_t last_ns, turn_ns, longest_ns = 0;
	int status;
	pid_t pid;

	large.places = 100000; /* more than half of the limit */
	if (observer_open(&kept, &d, &large) || end_one(&ended[1]))
		return 250;
	last_ns = cpu_ns(CLOCK_MONOTONIC);
	pid = ask_in_child(&large);
	for (unsigned int turn = 0; turn < TURNS; turn++) {
		bool over = waitpid(pid, &status, WNOHANG) == pid;

		turn_ns = cpu_ns(CLOCK_MONOTONIC) - last_ns;
		longest_ns = turn_ns > longest_ns ? turn_ns : longest_ns;
		if (over && longest_ns < ENDING_S * SECOND / 2)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 251;
		last_ns = cpu_ns(CLOCK_MONOTONIC);
		if (end_one(&ended[turn % 2]))
			return 252;
		observer_close(&ended[(turn + 1) % 2]);
		if (over) {
			pid = ask_in_child(&large);
			longest_ns = 0;
		}
	}
	kill(pid, SIGKILL);
	return 253;
}

Test(kernel_observe_room, request_does_not_wait_for_room_without_end)
{
	users_expect_end(users_run(ALICE, observe_without_room, 0), EAGAIN, "the second request");
}
