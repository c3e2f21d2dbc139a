/* children.c - eight inheriting observers on one process that forks COUNT sleeping children
 *
 * usage: children COUNT
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/hostile.h"

#define OBSERVERS 8
#define COUNT 10500

/* The children stay asleep until the attack's process group is killed. */
static void fork_children(unsigned int count, int gate, int begun)
{
	unsigned int n = 0;
	char byte;

	if (read(gate, &byte, 1) != 1)
		_exit(1);
	for (; n < count; n++) {
		pid_t pid = attack_fork();

		if (pid < 0)
			break;
		if (pid == 0) {
			pause();
			_exit(0);
		}
	}
	if (write(begun, &n, sizeof(n)) != sizeof(n))
		_exit(1);
	pause();
	_exit(0);
}

int main(int argc, char **argv)
{
	unsigned int count = argc > 1 ? (unsigned int)atoi(argv[1]) : COUNT, n;
	int gate[2], begun[2];
	long long granted = 0;
	pid_t pid;

	raise_limit(RLIMIT_NPROC);
	if (pipe(gate) < 0 || pipe(begun) < 0)
		attack_fail("pipe");
	pid = attack_fork();
	if (pid == 0)
		fork_children(count, gate[0], begun[1]);
	for (unsigned int i = 0; i < OBSERVERS; i++) {
		int sock = peer_dial(NULL);

		granted += sock >= 0 && peer_observe_pid(sock, pid, 0, true) == 0;
	}
	attack_result("granted", granted);
	if (write(gate[1], "", 1) != 1 || read(begun[0], &n, sizeof(n)) != sizeof(n))
		attack_fail("children");
	attack_result("children", n);
	attack_under_way();
	attack_wait(-1);
	attack_end_children();
	return 0;
}
