/* unwind_forecast.c - prepares the unwind tables of a command before it runs */
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
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

/* Makes @loader, which will run @program anyway, list the files that it would map. */
static void ask_loader(struct unwind_feeder *f, char *loader, char *program)
{
	char *argv[] = { loader, (char *)"--list", program, NULL }, line[PATH_MAX + 64];
	posix_spawn_file_actions_t actions;
	int out[2], status;
	FILE *lines;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) < 0)
		return;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (posix_spawn(&pid, loader, &actions, NULL, argv, environ))
		pid = -1;
	posix_spawn_file_actions_destroy(&actions);
	close(out[1]);
	lines = fdopen(out[0], "r");
	if (!lines)
		close(out[0]);
	while (lines && fgets(line, sizeof(line), lines))
		expect_listed(f, line);
	if (lines)
		fclose(lines);
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
