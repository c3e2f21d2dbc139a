/* unwind_forecast.c - prepares the unwind tables of a command before it runs */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbols/proc/guarded_file.h"

#include "unwind_forecast.h"

#define SCRIPTS_MAX 4  /* a script's interpreter can be a script */
#define FILES_MAX 256  /* stored for a program */
#define HEADERS_MAX 64 /* program headers that are read */

/* The file that execvp() would run, symbolic links resolved; the caller frees it. */
static char *find_command(const char *command)
{
	const char *path = getenv("PATH") ?: "/bin:/usr/bin";
	char name[PATH_MAX];

	if (strchr(command, '/'))
		return realpath(command, NULL);
	for (;; path++) {
		size_t n = strcspn(path, ":");

		if (snprintf(name, sizeof(name), "%.*s%s%s", (int)n, path, n ? "/" : "./",
			     command) < (int)sizeof(name) &&
		    !access(name, X_OK))
			return realpath(name, NULL);
		path += n;
		if (!*path)
			return NULL;
	}
}

/* Reads the interpreter of the script @fd; false: not a script. */
static bool read_interpreter(int fd, char *out, size_t bytes)
{
	char line[256];
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
	const char *at = line + 2;

	if (n < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = '\0';
	at += strspn(at, " \t");
	snprintf(out, bytes, "%.*s", (int)strcspn(at, " \t\r\n"), at);
	return *out == '/';
}

/* Reads the dynamic loader of the ELF file @fd; false: none. */
static bool read_loader(int fd, char *out, size_t bytes)
{
	Elf64_Ehdr eh;

	if (pread(fd, &eh, sizeof(eh), 0) != sizeof(eh) ||
	    memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 || eh.e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	for (unsigned int i = 0; i < eh.e_phnum && i < HEADERS_MAX; i++) {
		Elf64_Phdr ph;

		if (pread(fd, &ph, sizeof(ph), (off_t)(eh.e_phoff + i * sizeof(ph))) != sizeof(ph))
			return false;
		if (ph.p_type != PT_INTERP || !ph.p_filesz || ph.p_filesz > bytes)
			continue;
		return pread(fd, out, ph.p_filesz, (off_t)ph.p_offset) == (ssize_t)ph.p_filesz &&
		       !out[ph.p_filesz - 1] && *out == '/';
	}
	return false;
}

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

static void expect_lines(struct unwind_feeder *f, char *lines)
{
	char *rest = lines;

	for (char *line; (line = strsep(&rest, "\n"));) {
		if (*line == '/')
			expect_path(f, line);
	}
}

void unwind_forecast(struct unwind_feeder *f, const char *command)
{
	__cleanup(freep) char *program = f->map ? find_command(command) : NULL;
	char loader[PATH_MAX];

	if (!program)
		return;
	f->foretold = true;
	for (int i = 0; i < SCRIPTS_MAX && program; i++) {
		__cleanup(closep) int fd = guarded_file_open(program, NULL);
		__cleanup(freep) char *files = unwind_cache_files(f->cache, program);
		bool script = fd >= 0 && read_interpreter(fd, loader, sizeof(loader));

		if (fd >= 0 && !script)
			unwind_feeder_expect(f, fd, program);
		if (files)
			expect_lines(f, files);
		if (fd >= 0 && !script && read_loader(fd, loader, sizeof(loader)))
			ask_loader(f, loader, program);
		if (fd >= 0 && !script) {
			expect_java(f, program);
			unwind_feeder_program(f, fd);
		}
		free(steal(program));
		program = script ? realpath(loader, NULL) : NULL;
	}
}

/* Says whether @text has the line @line. */
static bool has_line(const char *text, const char *line)
{
	size_t n = strlen(line);

	for (const char *at = text; (at = strstr(at, line)); at++) {
		if ((at == text || at[-1] == '\n') && at[n] == '\n')
			return true;
	}
	return false;
}

/* The files of this recording come first, so that FILES_MAX cuts older ones. */
void unwind_forecast_keep(const struct unwind_feeder *f, const char *command,
			  const struct profile *p)
{
	__cleanup(freep) char *program = f->map && f->cache >= 0 ? find_command(command) : NULL;
	__cleanup(freep) char *before = program ? unwind_cache_files(f->cache, program) : NULL;
	__cleanup(freep) char *text = NULL;
	size_t bytes, kept = 0;
	FILE *out = program ? open_memstream(&text, &bytes) : NULL;
	char *rest = before;

	if (!out)
		return;
	for (size_t i = 0; i < p->nobjects && kept < FILES_MAX; i++) {
		const struct object *o = &p->objects[i];

		if (o->kind == OBJECT_FILE && *o->path == '/' && !strchr(o->path, '\n'))
			kept += fprintf(out, "%s\n", o->path) > 0;
	}
	fflush(out);
	for (char *line; (line = strsep(&rest, "\n")) && kept < FILES_MAX;) {
		if (*line == '/' && !has_line(text, line))
			kept += fprintf(out, "%s\n", line) > 0;
		fflush(out);
	}
	if (!fclose(out) && kept)
		unwind_cache_keep_files(f->cache, program, text);
}
