/* command.c - the command of a recording, with all processes that it starts */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#include "command.h"
#include "descendants.h"
#include "symbols/proc/procfs.h"

/* The ends of the pipes that the keeper and the command have. */
struct far_ends {
	int gate;
	int verdict;
	int end;
};

/* Runs in the command's process and does not return: waits at the gate, then execs the command. */
static _Noreturn void become_command(const struct self *self, char **argv,
				     const struct far_ends *far)
{
	char go;
	int err;

	self_restore(self);
	if (read(far->gate, &go, 1) != 1)
		_exit(127);
	execvp(argv[0], argv);
	err = errno;
	if (write(far->verdict, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(127);
}

static __u64 timeval_ns(const struct timeval *t)
{
	return 1000000000u * (__u64)t->tv_sec + 1000u * (__u64)t->tv_usec;
}

/* Waits for all processes below this one. Writes the status of process @command when it ends. */
static void wait_for_all(__u64 *ended_ns, pid_t command, int end)
{
	struct rusage used;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, 0, &used)) > 0) {
		__atomic_fetch_add(ended_ns,
				   timeval_ns(&used.ru_utime) + timeval_ns(&used.ru_stime),
				   __ATOMIC_RELEASE);
		if (pid == command && write(end, &status, sizeof(status)) != sizeof(status))
			break;
	}
}

/*
 * The keeper. Does not return. No signal of the terminal ends it, and it has none of profilctl's
 * files, whose end others wait for.
 */
static _Noreturn void keep(const struct self *self, char **argv, const struct far_ends *far,
			   __u64 *ended_ns)
{
	sigset_t all;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (!pid)
		become_command(self, argv, far);
	if (pid < 0)
		pid = -errno;
	signal(SIGCHLD, SIG_DFL); /* if it is ignored, nothing can be waited for */
	if (write(far->end, &pid, sizeof(pid)) != sizeof(pid) || pid < 0)
		_exit(1);
	if (dup2(far->end, STDIN_FILENO) < 0)
		_exit(1);
	syscall(SYS_close_range, STDIN_FILENO + 1, ~0u, 0);
	wait_for_all(ended_ns, pid, STDIN_FILENO);
	_exit(0);
}

/* Forks the keeper. Returns 0 or a negative errno. */
static int fork_keeper(struct command *c, const struct self *self, char **argv,
		       const struct far_ends *far)
{
	pid_t parent = getpid();

	c->keeper = fork();
	if (c->keeper)
		return c->keeper < 0 ? -errno : 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	closep(&c->gate);
	closep(&c->verdict);
	closep(&c->end);
	keep(self, argv, far, c->ended_ns);
}

static void shut(int *fd)
{
	closep(fd);
	*fd = -1;
}

/* Makes a pipe whose end number @near is the caller's. */
static int open_pipe(int *near_end, int *far_end, int near)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*near_end = fds[near];
	*far_end = fds[!near];
	return 0;
}

int command_open(struct command *c, const struct self *self, char **argv)
{
	__cleanup(closep) int gate = -1, verdict = -1, end = -1;
	int err;

	*c = (struct command)COMMAND_NONE;
	c->ended_ns = mmap(NULL, sizeof(*c->ended_ns), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c->ended_ns == MAP_FAILED) {
		c->ended_ns = NULL;
		return -errno;
	}
	err = open_pipe(&c->gate, &gate, 1) ?: open_pipe(&c->verdict, &verdict, 0)
					    ?: open_pipe(&c->end, &end, 0);
	if (!err)
		err = fork_keeper(c, self, argv, &(struct far_ends){ gate, verdict, end });
	if (err)
		return err;
	shut(&end);
	if (read(c->end, &c->pid, sizeof(c->pid)) != sizeof(c->pid))
		c->pid = -EIO;
	return c->pid < 0 ? c->pid : 0;
}

int command_release(struct command *c)
{
	ssize_t n;
	int err;

	if (write(c->gate, "", 1) != 1)
		return -errno;
	do {
		n = read(c->verdict, &err, sizeof(err));
	} while (n < 0 && errno == EINTR);
	return n == sizeof(err) ? -err : 0;
}

int command_wait(struct command *c, int *status, int timeout_ms)
{
	struct pollfd ended = { .fd = c->end, .events = POLLIN };

	shut(&c->gate);
	shut(&c->verdict);
	return poll(&ended, 1, timeout_ms) > 0 &&
	       read(c->end, status, sizeof(*status)) == sizeof(*status);
}

__u64 command_cpu_ns(const struct command *c)
{
	__cleanup(freep) pid_t *running = NULL;
	/* First, so that what ends meanwhile is not counted twice. */
	__u64 sum = __atomic_load_n(c->ended_ns, __ATOMIC_ACQUIRE);
	size_t n;

	if (!descendants(&running, &n, &c->keeper, 1)) {
		for (size_t i = 0; i < n; i++)
			sum += procfs_cpu_ns(running[i]);
	}
	return sum;
}

int command_running(const struct command *c, pid_t **out, size_t *n)
{
	int err = descendants(out, n, &c->keeper, 1);
	size_t running = 0;

	for (size_t i = 0; !err && i < *n; i++) {
		if ((*out)[i] != c->pid && !procfs_has_ended((*out)[i]))
			(*out)[running++] = (*out)[i];
	}
	*n = running;
	return err;
}

void command_close(struct command *c)
{
	shut(&c->gate);
	shut(&c->verdict);
	shut(&c->end);
	if (c->keeper > 0) {
		kill(c->keeper, SIGKILL);
		waitpid(c->keeper, NULL, 0);
	}
	if (c->ended_ns)
		munmap(c->ended_ns, sizeof(*c->ended_ns));
	*c = (struct command)COMMAND_NONE;
}
