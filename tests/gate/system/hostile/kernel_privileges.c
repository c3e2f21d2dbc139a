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
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/observer.h"
#include "tests/lib/state.h"
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

/* --- programs whose files have capabilities --------------------------------------------------- */

/* As setcap(8) writes it. */
struct file_capability {
	__le32 magic;
	__le32 permitted;
	__le32 inheritable;
	__le32 permitted_high;
	__le32 inheritable_high;
};

static char capable[160];

/* A copy of tail(1), which does not end, that has CAP_SYS_PTRACE. */
static void make_capable_program(void)
{
	const struct file_capability c = { .magic = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
					   .permitted = 1u << CAP_SYS_PTRACE };
	char command[400];

	snprintf(capable, sizeof(capable), "%s/tail", d.dir);
	snprintf(command, sizeof(command), "cp -L /usr/bin/tail %s", capable);
	cr_assert_eq(system(command), 0);
	if (setxattr(capable, "security.capability", &c, sizeof(c), 0) < 0)
		cr_skip_test("files have no capabilities here: %s", strerror(errno));
}

/* What a process gets that sends @ask on a socket whose HELLO was for another one; 0: the end.
 */
static ssize_t ask_for_another(int sock, const void *ask, size_t bytes)
{
	char answer[4096];

	if (recv(sock, answer, sizeof(answer), 0) <= 0)
		return -1;
	if (send(sock, ask, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
		return -2;
	return recv(sock, answer, sizeof(answer), 0);
}

/*
 * Connects as ALICE and execs the program, so that this pid has CAP_SYS_PTRACE when the daemon
 * looks. A child keeps the socket and asks.
 */
static int lend_to_child(unsigned int ready)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_MACHINE, TICKS_PERIOD_NS);
	struct sockaddr_un address;
	int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	if (sock < 0 || wire_address(&address, d.socket) ||
	    connect(sock, (struct sockaddr *)&address, sizeof(address)) < 0)
		return 250;
	if (fork() == 0) {
		ssize_t n = ask_for_another(sock, &ask, sizeof(ask));
		char verdict = n < 0 && errno == ECONNRESET ? 0 : (char)n;

		_exit(write((int)ready, &verdict, 1) != 1);
	}
	execl(capable, "tail", "-f", "/dev/null", (char *)NULL);
	return 251;
}

static bool executes_capable(pid_t pid)
{
	char path[32], name[200];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, name, sizeof(name) - 1);
	name[n < 0 ? 0 : n] = '\0';
	return !strcmp(name, capable);
}

Test(kernel_privileges, program_with_file_capabilities_lends_no_privilege_to_its_child)
{
	char verdict = 1;
	int ready[2];
	pid_t pid;

	make_capable_program();
	cr_assert(pipe(ready) == 0);
	kill(d.pid, SIGSTOP);
	cr_assert_eq(waitpid(d.pid, NULL, WUNTRACED), d.pid);
	pid = users_run(ALICE, lend_to_child, (unsigned int)ready[1]);
	close(ready[1]);
	AWAIT(executes_capable(pid));
	kill(d.pid, SIGCONT);
	cr_expect_eq(read(ready[0], &verdict, 1), 1);
	cr_expect_eq(verdict, 0, "%d", verdict);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* --- the daemon's processes ------------------------------------------------------------------- */

/* The permitted capabilities of @pid, and its name. */
static unsigned long long capabilities_of(pid_t pid, char name[32])
{
	unsigned long long caps = ~0ull;
	char path[32], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	cr_assert(f, "%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "Name: %31s", name);
		sscanf(line, "CapPrm: %llx", &caps);
	}
	fclose(f);
	return caps;
}

Test(kernel_privileges, processes_that_handle_clients_may_load_no_programs)
{
	const unsigned long long all = 1ull << CAP_SYS_PTRACE | 1ull << CAP_DAC_OVERRIDE;
	char path[64], name[32] = "";
	unsigned int n = 0;
	FILE *f;
	int pid;

	run_as_root(1); /* a client, so that there is a worker */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)d.pid, (int)d.pid);
	f = fopen(path, "re");
	cr_assert(f, "%s: %s", path, strerror(errno));
	while (fscanf(f, "%d", &pid) == 1) {
		cr_expect_eq(capabilities_of(pid, name), all, "%s", name);
		n++;
	}
	fclose(f);
	cr_expect_geq(n, 2, "%u: the spawner and a worker", n);
}
