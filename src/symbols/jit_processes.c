/* jit_processes.c - running processes of JIT runtimes that do not describe their code */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#include "symbols/proc/procfs.h"
#include "interpreters/running.h"
#include "jit_processes.h"
#include "perf_map.h"

#define ARGUMENTS_MAX 65536
#define MAPS_MAX (256 << 10)
#define RUNTIMES_MAX 16
#define PYTHON_MINOR_LEAST 12

/* Says whether Python @name, as "python3.12", can write a perf map. */
static bool is_python(const char *name)
{
	unsigned int minor;
	char rest;

	return sscanf(name, "python3.%u%c", &minor, &rest) == 1 && minor >= PYTHON_MINOR_LEAST;
}

static bool has_name(const struct jit_runtime *r, const char *base)
{
	if (!strcmp(r->name, "python"))
		return is_python(base);
	if (!strcmp(r->name, "erlang"))
		return !strcmp(base, "beam.smp");
	return !strcmp(base, r->name) || (!strcmp(r->name, "node") && !strcmp(base, "nodejs"));
}

static const struct jit_runtime *by_program(pid_t pid)
{
	char path[64], exe[PATH_MAX];
	const char *base;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	exe[n < 0 ? 0 : n] = '\0';
	base = strrchr(exe, '/');
	for (size_t i = 0; base && i < jit_nruntimes; i++) {
		if (has_name(&jit_runtimes[i], base + 1))
			return &jit_runtimes[i];
	}
	return NULL;
}

/* Says whether @maps has a library of the runtime; of Python, 3.12 or newer. */
static bool maps_library(const char *maps, const struct jit_runtime *r)
{
	for (size_t i = 0; i < JIT_LIBRARIES_MAX && r->libraries[i]; i++) {
		const char *at = strstr(maps, r->libraries[i]);

		if (at && (strcmp(r->name, "python") ||
			   strtoul(at + strlen("libpython3."), NULL, 10) >= PYTHON_MINOR_LEAST))
			return true;
	}
	return false;
}

static const struct jit_runtime *by_library(pid_t pid)
{
	__cleanup(freep) char *maps = malloc(MAPS_MAX);
	size_t n = maps ? procfs_read(pid, "maps", maps, MAPS_MAX) : 0;

	for (size_t i = 0; n && i < jit_nruntimes; i++) {
		if (maps_library(maps, &jit_runtimes[i]))
			return &jit_runtimes[i];
	}
	return NULL;
}

const struct jit_runtime *jit_runtime_of(pid_t pid)
{
	const struct jit_runtime *r = by_program(pid);

	return r ? r : by_library(pid);
}

/* Says whether a file of NUL-separated arguments has @word. */
static bool has_word(pid_t pid, const char *file, const char *word)
{
	static char text[ARGUMENTS_MAX];
	size_t n = procfs_read(pid, file, text, sizeof(text));

	for (size_t i = 0; i < n; i++)
		text[i] = text[i] ? text[i] : ' ';
	return strstr(text, word) != NULL;
}

static bool has_words(pid_t pid, const char *file, const struct jit_runtime *r)
{
	for (size_t i = 0; i < JIT_WORDS_MAX && r->words[i]; i++) {
		if (has_word(pid, file, r->words[i]))
			return true;
	}
	return false;
}

static bool has_names(pid_t pid, const struct jit_runtime *r)
{
	__cleanup(closep) int map = perfmap_open_any(pid);

	return map >= 0 || has_words(pid, "cmdline", r) || has_words(pid, "environ", r);
}

const struct jit_processes *jit_processes(void)
{
	static struct jit_processes found[RUNTIMES_MAX];
	__cleanup(freep) pid_t *pids = NULL;
	size_t npids = 0;

	for (size_t i = 0; i < jit_nruntimes; i++)
		found[i] = (struct jit_processes){ .runtime = &jit_runtimes[i] };
	if (procfs_find(&pids, &npids, &(struct procfs_select){ 0 }) < 0)
		npids = 0;
	for (size_t i = 0; i < npids; i++) {
		const struct jit_runtime *r = by_program(pids[i]);
		struct jit_processes *f = r ? &found[r - jit_runtimes] : NULL;

		if (f && !has_names(pids[i], r) && !running_is_shown(pids[i]))
			f->first = f->unnamed++ ? f->first : pids[i];
	}
	return found;
}
