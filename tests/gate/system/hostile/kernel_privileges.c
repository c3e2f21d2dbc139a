/* kernel_privileges.c - the privileges of a connection are those of the program that connected */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/observer.h"
#include "tests/lib/users.h"

#define ALICE 61001

DAEMON_SUITE(kernel_privileges, "--rate", TICKS_RATE);

/*
 * Python's part: as root by the set-uid program that exec'd it, waits for HELLO; then without
 * privileges sends the request. The exit status is the errno of the reply.
 */
static const char late_user[] = "import os, socket, sys\n"
				"s = socket.socket(fileno=int(sys.argv[1]))\n"
				"os.write(1, b'r')\n"
				"s.recv(65536)\n"
				"os.setresuid(61001, 61001, 61001)\n"
				"s.send(open(sys.argv[2], 'rb').read())\n"
				"os._exit(int.from_bytes(s.recv(65536)[16:20], 'little'))\n";

static char request[160], shell[160];

static void write_request(void)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_MACHINE, TICKS_PERIOD_NS);
	__cleanup(closep) int fd = -1;

	snprintf(request, sizeof(request), "%s/request", d.dir);
	fd = open(request, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	cr_assert(fd >= 0 && fchmod(fd, 0644) == 0 && write(fd, &ask, sizeof(ask)) == sizeof(ask));
}

static void make_set_uid_shell(void)
{
	char command[400];

	snprintf(shell, sizeof(shell), "%s/sh", d.dir);
	snprintf(command, sizeof(command), "cp -L /bin/sh %s && chmod 4755 %s", shell, shell);
	cr_assert_eq(system(command), 0);
}

/* Connects as ALICE, then execs the set-uid shell, and Python by that. */
static int connect_and_exec(unsigned int ready)
{
	struct sockaddr_un address;
	int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	char fd[16];

	snprintf(fd, sizeof(fd), "%d", sock);
	if (sock < 0 || wire_address(&address, d.socket) || dup2((int)ready, 1) < 0 ||
	    connect(sock, (struct sockaddr *)&address, sizeof(address)) < 0)
		return 250;
	execl(shell, shell, "-p", "-c", "PATH=/usr/bin:/bin exec python3 -c \"$0\" \"$@\"",
	      late_user, fd, request, (char *)NULL);
	return 251;
}

Test(kernel_privileges, set_uid_program_execd_after_connect_lends_no_privilege)
{
	int ready[2];
	char byte;
	pid_t pid;

	write_request();
	make_set_uid_shell();
	cr_assert(pipe(ready) == 0);
	kill(d.pid, SIGSTOP);
	cr_assert_eq(waitpid(d.pid, NULL, WUNTRACED), d.pid);
	pid = users_run(ALICE, connect_and_exec, (unsigned int)ready[1]);
	close(ready[1]);
	cr_expect_eq(read(ready[0], &byte, 1), 1, "the set-uid program does not run");
	kill(d.pid, SIGCONT);
	users_expect_end(pid, EACCES, "the user who connected");
}

/* Keeps CAP_SYS_PTRACE on the way from root to ALICE. */
static int observe_with_capability(unsigned int keeps)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_MACHINE, TICKS_PERIOD_NS);
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { { .effective = 1u << CAP_SYS_PTRACE,
						    .permitted = 1u << CAP_SYS_PTRACE } };
	struct observer o;

	if (prctl(PR_SET_KEEPCAPS, keeps) < 0 || setresgid(ALICE, ALICE, ALICE) < 0 ||
	    setresuid(ALICE, ALICE, ALICE) < 0 || (keeps && syscall(SYS_capset, &header, caps) < 0))
		return 250;
	return observer_open(&o, &d, &ask);
}

static int run_as_root(unsigned int keeps)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(observe_with_capability(keeps));
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 252;
}

Test(kernel_privileges, user_with_ptrace_capability_may_observe_machine)
{
	cr_expect_eq(run_as_root(1), 0);
	cr_expect_eq(run_as_root(0), EACCES);
}
