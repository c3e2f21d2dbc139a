/* clocks.c - observers with distinct periods, or at the highest rate
 *
 * usage: clocks distinct   short connections, each observing at a period of its own
 *        clocks fast       eight observers at the highest rate, all on one sleeping process
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/lib/hostile.h"

#define SLOWEST_NS 1000000000
#define FASTEST_NS 20000
#define OBSERVERS 8

static void distinct(void)
{
	pid_t asleep = attack_fork();
	uint64_t period = 1000000; /* the shortest that a user may have */
	long long granted = 0;

	if (asleep == 0) {
		pause();
		_exit(0);
	}
	attack_under_way();
	while (!attack_over()) {
		__cleanup(closep) int sock = peer_dial(NULL);

		granted += sock >= 0 && peer_observe_pid(sock, asleep, period, false) == 0;
		period += 101;
	}
	attack_result("granted", granted);
}

/* The shortest period that is accepted, found by requesting longer and longer ones. */
static int observe_fastest(pid_t pid, uint64_t *period)
{
	for (*period = FASTEST_NS; *period < SLOWEST_NS; *period += *period / 4) {
		int sock = peer_dial(NULL);

		if (sock < 0)
			return -1;
		if (peer_observe_pid(sock, pid, *period, false) == 0)
			return sock;
		close(sock);
	}
	return -1;
}

static void fast(void)
{
	pid_t asleep = attack_fork();
	long long granted = 0, events = 0;
	uint64_t period;

	if (asleep == 0) {
		pause();
		_exit(0);
	}
	for (unsigned int i = 0; i < OBSERVERS; i++) {
		if (observe_fastest(asleep, &period) < 0)
			continue;
		granted++;
		events += (long long)(1000000000 / period);
	}
	attack_result("granted", granted);
	attack_result("hz", events);
	attack_under_way();
	attack_wait(-1);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "distinct") == 0)
		distinct();
	else if (argc > 1 && strcmp(argv[1], "fast") == 0)
		fast();
	else
		return 2;
	return 0;
}
