/* unwind_forecast.c - prepares the unwind tables of a command before it runs */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbols/elf/command_file.h"
#include "symbols/proc/guarded_file.h"

#include "unwind_forecast.h"

static void expect_path(struct unwind_feeder *f, const char *path)
{
	__cleanup(closep) int fd = guarded_file_open(path, NULL);

	if (fd >= 0)
		unwind_feeder_expect(f, fd, path);
}

/* "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)", or only the path. */
static void expect_listed(struct unwind_feeder *f, char *line)
{
	char *path = strchr(line, '/'), *end = path ? strstr(path, " (0x") : NULL;

	if (!end)
		return;
	*end = '\0';
	expect_path(f, path);
}

#define LOADER_S 2 /* it takes milliseconds */

/* In the child: the caller's signals may be blocked, and an alarm outlives the exec. */
static void become_loader(char *loader, char *program, int out)
{
	char *argv[] = { loader, (char *)"--list", program, NULL };
	int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	alarm(LOADER_S);
	if (dup2(out, STDOUT_FILENO) >= 0 && dup2(nothing, STDERR_FILENO) >= 0)
		execv(loader, argv);
	_exit(127);
}

/*
 * Makes @loader, which will run @program anyway, list the files that it would map. What does not
 * answer is ended: by its alarm, or by the terminal's Ctrl-C.
 */
static void ask_loader(struct unwind_feeder *f, char *loader, char *program)
{
	__cleanup(fclosep) FILE *lines = NULL;
	char line[PATH_MAX + 64];
	int out[2], status;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0)
		return;
	pid = fork();
	if (!pid)
		become_loader(loader, program, out[1]);
	close(out[1]);
	lines = fdopen(out[0], "r");
	if (!lines)
		close(out[0]);
	while (lines && fgets(line, sizeof(line), lines))
		expect_listed(f, line);
	if (pid > 0)
		waitpid(pid, &status, 0);
}

/* A launcher of Java opens the virtual machine beside it when it runs. */
static void expect_java(struct unwind_feeder *f, const char *program)
{
	const char *base = strrchr(program, '/');
	char path[PATH_MAX];

	if (base && snprintf(path, sizeof(path), "%.*s/../lib/server/libjvm.so",
			     (int)(base - program), program) < (int)sizeof(path))
		expect_path(f, path);
}

void unwind_forecast(struct unwind_feeder *f, const char *command)
{
	__cleanup(freep) char *program = f->map ? command_find(command) : NULL;
	char next[PATH_MAX];

	f->foretold = program;
	for (int i = 0; i < SCRIPTS_MAX && program; i++) {
		__cleanup(closep) int fd = guarded_file_open(program, NULL);

		if (fd >= 0 && !script_interpreter(fd, next, sizeof(next))) {
			unwind_feeder_expect(f, fd, program);
			if (program_linker(fd, next, sizeof(next)) && *next == '/')
				ask_loader(f, next, program);
			expect_java(f, program);
			unwind_feeder_program(f, fd);
			return;
		}
		free(steal(program));
		program = fd >= 0 ? realpath(next, NULL) : NULL;
	}
}
