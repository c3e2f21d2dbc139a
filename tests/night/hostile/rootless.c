/* rootless.c - uid 0 without capabilities tries to observe another user's process
 *
 * usage: rootless PID
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/lib/hostile.h"

#define CONNECTIONS_MAX 600

static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	for (int i = 0; prctl(PR_CAPBSET_READ, i) >= 0; i++)
		prctl(PR_CAPBSET_DROP, i);
	if (syscall(SYS_capset, &header, none) < 0)
		attack_fail("capset");
}

static unsigned int connect_all(void)
{
	unsigned int n = 0;

	while (n < CONNECTIONS_MAX && peer_dial(NULL) >= 0)
		n++;
	return n;
}

int main(int argc, char **argv)
{
	pid_t pid = argc > 1 ? atoi(argv[1]) : 0;
	__cleanup(closep) int pidfd = -1;
	__cleanup(closep) int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	__cleanup(closep) int sock = -1;

	raise_limit(RLIMIT_NOFILE);
	drop_capabilities();
	pidfd = pidfd_open(pid, 0);
	sock = peer_dial(NULL);
	if (pidfd < 0 || sock < 0)
		attack_fail("pidfd_open, or connect");
	attack_result("observe", peer_observe(sock, pidfd, maps, 0, false));
	closep(&sock);
	sock = peer_dial(NULL);
	attack_result("machine", peer_observe_machine(sock));
	attack_result("connections", connect_all());
	return 0;
}
