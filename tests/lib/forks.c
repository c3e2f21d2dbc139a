/* forks.c - profiled processes that fork, share memory, lose their leader, and end */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/profil.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/shared_maps.h"
#include "forks.h"
#include "profil.h"
#include "state.h"

#define MS 1000000ull
#define STACK_BYTES 65536

void *forks_memory(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	cr_assert(at != MAP_FAILED, "mmap: %s", strerror(errno));
	return at;
}

pid_t fork_now(void)
{
	pid_t pid = fork();

	cr_assert(pid >= 0, "fork: %s", strerror(errno));
	return pid;
}

void reap(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid, "waitpid: %s", strerror(errno));
	cr_expect_eq(status, 0, "process %d ended with wait status 0x%x", (int)pid, status);
}
