/* cost.c - runs a command and stores its CPU time: "cost FILE COMMAND [ARG...]" */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A clock that runs while this process or its children have a CPU; see loops.h. */
static int task_clock_open(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_TASK_CLOCK,
					.inherit = 1 };

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Stores the CPU time of this process and its children, by the scheduler and by the task clock, in
 * ns. */
static int note(const char *path, int task_clock)
{
	FILE *f = fopen(path, "w");
	uint64_t task_ns;
	long long us = 0;

	for (int of = RUSAGE_CHILDREN; of <= RUSAGE_SELF; of++) {
		struct rusage used;

		getrusage(of, &used);
		us += (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000ll +
		      used.ru_utime.tv_usec + used.ru_stime.tv_usec;
	}
	if (read(task_clock, &task_ns, sizeof(task_ns)) != sizeof(task_ns))
		return perror("task clock"), 1;
	if (!f || fprintf(f, "%lld %lld\n", us * 1000, (long long)task_ns) < 0 || fclose(f) != 0)
		return perror(path), 1;
	return 0;
}

int main(int argc, char **argv)
{
	int task_clock = task_clock_open(), status;
	pid_t pid;

	if (argc < 3)
		return fprintf(stderr, "usage: cost FILE COMMAND [ARG...]\n"), 2;
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return perror(argv[2]), 1;
	if (note(argv[1], task_clock))
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
