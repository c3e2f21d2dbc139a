/* jit_runtimes.c - running JIT runtimes that write no perf map */
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#include "symbols/proc/procfs.h"
#include "jit_runtimes.h"
#include "perf_map.h"

#define WORDS_MAX 3
#define ARGUMENTS_MAX 65536
#define PYTHON_MINOR_LEAST 12

static const struct kind {
	const char *name, *cure;
	const char *words[WORDS_MAX]; /* arguments or environment variables that enable perf maps */
} kinds[] = {
	{ "node",
	  "node --perf-basic-prof, or NODE_OPTIONS=--perf-basic-prof",
	  { "--perf-basic-prof", "--perf-prof" } },
	{ "java",
	  "'jcmd PID Compiler.perfmap' while it runs, or java -XX:+DumpPerfMapAtExit",
	  { "DumpPerfMapAtExit", "perf-map-agent", "perfasync" } },
	{ "python",
	  "python3 -X perf, or PYTHONPERFSUPPORT=1",
	  { "PYTHONPERFSUPPORT=1", "-Xperf", "-X perf" } },
	{ "dotnet", "DOTNET_PerfMapEnabled=1", { "PerfMapEnabled=" } },
};

#define NKINDS (sizeof(kinds) / sizeof(*kinds))

/*
 * Says whether the program at @exe is of this kind; for Python, only versions that can write the
 * file.
 */
static bool is_kind(const struct kind *k, const char *exe)
{
	const char *base = strrchr(exe, '/');
	unsigned int minor;
	char rest;

	base = base ? base + 1 : exe;
	if (!strcmp(k->name, "python"))
		return sscanf(base, "python3.%u%c", &minor, &rest) == 1 &&
		       minor >= PYTHON_MINOR_LEAST;
	return !strcmp(base, k->name);
}

/* Says whether a file of NUL-separated arguments has one of the words. */
static bool has_words(pid_t pid, const char *file, const struct kind *k)
{
	static char text[ARGUMENTS_MAX];
	size_t n = procfs_read(pid, file, text, sizeof(text));

	for (size_t i = 0; i < n; i++)
		text[i] = text[i] ? text[i] : ' ';
	for (size_t i = 0; i < WORDS_MAX && k->words[i]; i++) {
		if (strstr(text, k->words[i]))
			return true;
	}
	return false;
}

static bool has_names(pid_t pid, const struct kind *k)
{
	__cleanup(closep) int map = perfmap_open(pid);

	return map >= 0 || has_words(pid, "cmdline", k) || has_words(pid, "environ", k);
}

static void look_at(struct jit_runtime *found, pid_t pid)
{
	char path[64], exe[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	exe[n < 0 ? 0 : n] = '\0';
	for (size_t i = 0; i < NKINDS; i++) {
		if (!is_kind(&kinds[i], exe) || has_names(pid, &kinds[i]))
			continue;
		found[i].first = found[i].unnamed++ ? found[i].first : pid;
	}
}

const struct jit_runtime *jit_runtimes(size_t *n)
{
	static struct jit_runtime found[NKINDS];
	__cleanup(freep) pid_t *pids = NULL;
	size_t npids = 0;

	for (size_t i = 0; i < NKINDS; i++)
		found[i] = (struct jit_runtime){ .name = kinds[i].name, .cure = kinds[i].cure };
	if (procfs_find(&pids, &npids, &(struct procfs_select){ 0 }) < 0)
		npids = 0;
	for (size_t i = 0; i < npids; i++)
		look_at(found, pids[i]);
	*n = NKINDS;
	return found;
}
