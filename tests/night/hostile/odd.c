/* odd.c - libprofil in restricted processes, each a child whose exit is the verdict
 *
 * usage: odd fork       a fork under a filter that kills at socket()
 *        odd altstack   profil() on and off in a handler on an alternate stack of 8192 bytes
 *        odd cloned     two processes that share their memory turn a profile on and off
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/hostile.h"
#include "profil.h"

#define PAGE 4096
#define ALTERNATE 8192
#define ROUNDS 500

extern char __executable_start[];

static unsigned short buf[4096];

static int start(void)
{
	return profil(buf, sizeof(buf), (size_t)__executable_start, 4096);
}

static int stop(void)
{
	return profil(buf, 0, 0, 0);
}

static void kill_at_socket(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		attack_fail("seccomp");
}

static int fork_filtered(void)
{
	int status;
	pid_t pid;

	if (start() < 0)
		return 2;
	kill_at_socket();
	pid = fork();
	if (pid == 0)
		_exit(0);
	return pid < 0 || waitpid(pid, &status, 0) != pid || status ? 3 : 0;
}

static volatile int failed;

static void on_signal(int number)
{
	failed = start() < 0 || profil_sync() < 0 || stop() < 0;
}

/* A guard page is below the stack. */
static int handle_on_small_stack(void)
{
	unsigned char *area = mmap(NULL, ALTERNATE + PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = area + PAGE, .ss_size = ALTERNATE };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };

	if (area == MAP_FAILED || mprotect(area, PAGE, PROT_NONE) || sigaltstack(&stack, NULL) ||
	    sigaction(SIGUSR1, &action, NULL))
		return 2;
	raise(SIGUSR1);
	return failed ? 3 : 0;
}

static int on_and_off(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		start();
		stop();
	}
	return 0;
}

/* Each has its own pid, so a lock that identifies its holder by pid would admit both. */
static int share_memory(void)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	int status;
	pid_t pid = clone(on_and_off, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);

	if (pid < 0)
		return 2;
	on_and_off(NULL);
	if (waitpid(pid, &status, 0) != pid || status)
		return 3;
	return start() < 0 || stop() < 0 ? 4 : 0;
}

static int run(const char *what)
{
	if (strcmp(what, "fork") == 0)
		return fork_filtered();
	if (strcmp(what, "altstack") == 0)
		return handle_on_small_stack();
	if (strcmp(what, "cloned") == 0)
		return share_memory();
	return 1;
}

int main(int argc, char **argv)
{
	int status;
	pid_t pid = attack_fork();

	if (pid == 0) {
		alarm(60); /* ends the test if a lock is never released */
		_exit(run(argc > 1 ? argv[1] : ""));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		attack_fail("waitpid");
	attack_result("signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	attack_result("status", WIFEXITED(status) ? WEXITSTATUS(status) : 0);
	return 0;
}
