/* users.c - processes of ordinary users */
#include <criterion/criterion.h>
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "users.h"

int users_become(uid_t uid)
{
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		return -1;
	/* A change of uid resets both. */
	return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? -1 : prctl(PR_SET_DUMPABLE, 1);
}

pid_t users_run(uid_t uid, int (*fn)(unsigned int), unsigned int arg)
{
	pid_t pid = fork();

	cr_assert(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(getuid() == 0 && users_become(uid) < 0 ? 99 : fn(arg));
	}
	return pid;
}

void users_expect_end(pid_t pid, int expected, const char *what)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == expected,
		  "%s ended with wait status 0x%x, not with exit status %d", what, status,
		  expected);
}

int users_wait(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "a process ended with wait status 0x%x", status);
	return WEXITSTATUS(status);
}
