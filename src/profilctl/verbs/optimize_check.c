/* optimize_check.c - measures a program before and after, in turns */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "analysis/paired.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/sanitize.h"

#include "optimize_check.h"
#include "profilctl/util/exit_status.h"

extern char **environ;

/* Quotes @path for the shell: ' becomes '\''. */
static void put_quoted(FILE *out, const char *path)
{
	fputc('\'', out);
	for (; *path; path++)
		fprintf(out, *path == '\'' ? "'\\''" : "%c", *path);
	fputc('\'', out);
}

/* The command with @program for each {}. The caller frees it. NULL: out of memory. */
static char *command_with(const char *command, const char *program)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	bool failed;

	if (!out)
		return NULL;
	for (const char *at = command; *at; at++) {
		if (at[0] == '{' && at[1] == '}') {
			put_quoted(out, program);
			at++;
		} else {
			fputc(*at, out);
		}
	}
	failed = ferror(out);
	if (fclose(out) || failed) {
		free(text);
		return NULL;
	}
	return text;
}

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/*
 * Runs @command without its standard output. Measures the CPU time of it and of the children that
 * it has waited for. Prints a message on failure and returns an enum ctl_status.
 */
static int run(double *cpu_s, char *command)
{
	char sh[] = "sh", c[] = "-c";
	char *argv[] = { sh, c, command, NULL };
	posix_spawn_file_actions_t files;
	struct rusage used;
	char clean[256];
	int status, err;
	pid_t pid;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	err = posix_spawn(&pid, "/bin/sh", &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	if (err) {
		log_err("cannot run /bin/sh: %s", strerror(err));
		return CTL_ERROR;
	}
	while (wait4(pid, &status, 0, &used) < 0)
		;
	*cpu_s = seconds(&used.ru_utime) + seconds(&used.ru_stime);
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return CTL_OK;
	log_err("optimize: the command of --check ended with %s %d: %s",
		WIFSIGNALED(status) ? "signal" : "status",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		sanitize(clean, sizeof(clean), command));
	return CTL_ERROR;
}

/* Which goes first alternates: the second of a pair can find a warmer machine. */
static int run_rounds(struct round *round, size_t n, char *before, char *after)
{
	double unused;
	int status = run(&unused, before);

	if (!status)
		status = run(&unused, after);
	for (size_t i = 0; i < n && !status; i++) {
		if (i % 2)
			status = run(&round[i].after_s, after);
		if (!status)
			status = run(&round[i].before_s, before);
		if (!status && !(i % 2))
			status = run(&round[i].after_s, after);
	}
	return status;
}

static void say(const struct paired *p, size_t rounds)
{
	double low = 100 * (1 - p->high), high = 100 * (1 - p->low);

	printf("before: %.3f s of CPU time; after: %.3f s (medians of %zu runs each, in turns)\n",
	       p->before_s, p->after_s, rounds);
	if (p->high < 1)
		printf("it pays: %.1f %% less CPU time (%.1f to %.1f %% less, at 99 %% "
		       "confidence)\n",
		       100 * (1 - p->ratio), low, high);
	else if (p->low > 1)
		printf("it does not pay: %.1f %% more CPU time (%.1f to %.1f %% more, at 99 %% "
		       "confidence)\n",
		       100 * (p->ratio - 1), -high, -low);
	else
		printf("no difference is proved: it lies between %.1f %% less and %.1f %% more CPU "
		       "time, at 99 %% confidence (--rounds takes more)\n",
		       high, -low);
}

int optimize_check(const struct options *o, const char *before)
{
	size_t n = o->rounds ? o->rounds : OPTIONS_ROUNDS;
	__cleanup(freep) char *old = command_with(o->check, before);
	__cleanup(freep) char *new = command_with(o->check, o->optimized);
	__cleanup(freep) struct round *round = calloc(n, sizeof(*round));
	struct paired p;
	int status;

	if (!old || !new || !round) {
		log_err("optimize: %s", strerror(ENOMEM));
		return CTL_ERROR;
	}
	status = run_rounds(round, n, old, new);
	if (status)
		return status;
	if (paired_compare(&p, round, n) < 0) {
		log_err("optimize: %s", strerror(ENOMEM));
		return CTL_ERROR;
	}
	say(&p, n);
	return CTL_OK;
}
