/* optimize.c - writes the profile of a program for its compiler, and says whether that paid */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sanitize.h"
#include "formats/branches.h"
#include "formats/format.h"
#include "profilctl/output/output.h"
#include "load_operands.h"
#include "symbols/elf/elf_file.h"
#include "verb.h"
#include "analysis/paired.h"
#include "profilctl/util/exit_status.h"
#include "profilctl/options/options.h"

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

/*
 * Runs o->check with @before and with o->optimized, o->rounds times each, and prints the CPU time
 * of both, and whether they differ. Prints a message on failure and returns an enum ctl_status.
 */
static int optimize_check(const struct options *o, const char *before)
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

struct program {
	const char *path;
	struct profile *profile; /* its samples, in object 0 */
	__u64 profiles;		 /* that have some */
};

/* Opens the program as the one object of a profile. Returns an enum ctl_status after a message. */
static int program_open(struct program *b, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct object *object;
	char clean[512];
	__u32 index;

	b->path = path;
	if (fd < 0) {
		log_err("cannot open %s: %s", sanitize(clean, sizeof(clean), path),
			strerror(errno));
		return CTL_ERROR;
	}
	b->profile = profile_new();
	if (!b->profile || profile_add_object(b->profile, path, 0, 0, fd, &index) < 0) {
		log_err("optimize: %s", strerror(ENOMEM));
		return CTL_ERROR;
	}
	object = &b->profile->objects[index];
	elf_file_layout(fd, &object->segments, &object->program);
	elf_file_build_id(fd, object->build_id, sizeof(object->build_id));
	b->profile->command = strdup("");
	if (*object->build_id && b->profile->command)
		return CTL_OK;
	log_err("%s has no build id, so no profile can be proved to be of it (link it with "
		"-Wl,--build-id)",
		sanitize(clean, sizeof(clean), path));
	return CTL_ERROR;
}

/* Names a profile that has no samples of the program, and why. */
static void say_other(const struct program *b, const struct profile *p, const char *file)
{
	const char *name = profile_base_name(b->path);
	char clean[2][256];

	for (size_t i = 0; i < p->nobjects; i++) {
		const struct object *o = &p->objects[i];

		if (strcmp(profile_base_name(o->path), name) || !*o->build_id)
			continue;
		log_warning("%s is of another build of %s: build id %s, and not %s",
			    sanitize(clean[0], sizeof(clean[0]), file),
			    sanitize(clean[1], sizeof(clean[1]), name), o->build_id,
			    b->profile->objects->build_id);
		return;
	}
	log_warning("%s has no samples of %s", sanitize(clean[0], sizeof(clean[0]), file),
		    sanitize(clean[1], sizeof(clean[1]), name));
}

/* Adds the branches that @p has from or to the program. Object 1 is all others. */
static int program_add_branches(struct program *b, const struct profile *p)
{
	const char *build_id = b->profile->objects->build_id;
	__cleanup(freep) struct branch *branch = NULL;
	size_t n = 0;
	__u32 other;
	int err = b->profile->nobjects > 1
			  ? 0
			  : profile_add_object(b->profile, PROFILE_ANON, 0, 0, -1, &other);

	err = err ?: branches_read(&branch, &n, p);
	for (size_t i = 0; i < n && !err; i++) {
		struct branch *own = &branch[i];

		own->from_object = strcmp(p->objects[own->from_object].build_id, build_id) != 0;
		own->object = strcmp(p->objects[own->object].build_id, build_id) != 0;
		if (own->from_object && own->object)
			continue;
		err = branches_add(&b->profile->calls, own)
			      ?: profile_add_place(b->profile, 0, own->object ? own->from : own->to,
						   1, own->count);
	}
	return err;
}

static int program_add_places(struct program *b, const struct profile *p)
{
	const struct object *mine = b->profile->objects;
	int err = 0;

	places_each(place, &p->places) {
		const struct object *o = &p->objects[place->object];

		if (err || strcmp(o->build_id, mine->build_id))
			continue;
		err = profile_add_place(b->profile, 0, place->offset, place->width, place->count);
	}
	return err;
}

/* Adds the samples that @p has of the program. */
static int program_add(struct program *b, const struct profile *p, const char *file)
{
	__u64 had = b->profile->binned;
	int err = profile_is_branches(p) ? program_add_branches(b, p) : program_add_places(b, p);

	if (!err && b->profile->binned == had)
		say_other(b, p, file);
	else
		b->profiles++;
	return err;
}

static int program_read(struct program *b, const struct options *o)
{
	for (int i = 1; i < o->argc; i++) {
		__cleanup(profile_freep) struct profile *p = NULL;
		int status = load_operands(&p, o, o->argv + i, 1);

		if (status && status != CTL_PARTIAL)
			return status;
		if (i > 1 && profile_is_branches(p) != profile_is_branches(b->profile)) {
			log_err("optimize: %s: branches and other samples do not add up: give "
				"profiles of one kind",
				o->argv[i]);
			return CTL_USAGE;
		}
		if (!b->profile->event && p->event)
			b->profile->event = strdup(p->event);
		b->profile->tick_ns = p->tick_ns;
		if (program_add(b, p, o->argv[i]) < 0) {
			log_err("optimize: %s", strerror(ENOMEM));
			return CTL_ERROR;
		}
	}
	if (b->profile->binned)
		return CTL_OK;
	log_err("optimize: no profile is of this build of %s", profile_base_name(b->path));
	return CTL_ERROR;
}

#define LAYOUT " -reorder-blocks=ext-tsp -reorder-functions=hfsort\n"

/* Prints what to do with @file. */
static void say_command(const struct options *o, const struct program *b, const char *file)
{
	char clean[2][512];

	printf("%s: %llu samples of %llu profile%s of build %s\n",
	       sanitize(clean[0], sizeof(clean[0]), file), b->profile->binned, b->profiles,
	       b->profiles == 1 ? "" : "s", b->profile->objects->build_id);
	sanitize(clean[1], sizeof(clean[1]), b->path);
	if (strcmp(o->format->name, "bolt") != 0)
		printf("  clang -O2 -g -fdebug-info-for-profiling -fprofile-sample-use=%s ...\n",
		       clean[0]);
	else if (profile_is_branches(b->profile))
		printf("  llvm-bolt %s -aggregate-only -pa -p %s -o %s.fdata\n"
		       "  llvm-bolt %s -o %s.bolt -data=%s.fdata" LAYOUT,
		       clean[1], clean[0], clean[0], clean[1], clean[1], clean[0]);
	else
		printf("  llvm-bolt %s -o %s.bolt -data=%s -nl" LAYOUT, clean[1], clean[1],
		       clean[0]);
}

/* Writes the profile for the compiler: the format and file of @o, or PROGRAM.prof. */
static int program_write(const struct options *o, const struct program *b)
{
	struct options to = *o;
	char file[4096];
	FILE *out;
	int status;

	if (!to.format)
		to.format = format_find("llvm");
	snprintf(file, sizeof(file), "%s.%s", profile_base_name(b->path),
		 strcmp(to.format->name, "bolt") != 0 ? "prof"
		 : profile_is_branches(b->profile)    ? "branches"
						      : "fdata");
	if (!to.output)
		to.output = file;
	status = output_open(&out, &to);
	if (!status)
		status = output_write(out, &to, b->profile);
	if (!status)
		say_command(&to, b, to.output);
	return status;
}

static int check_options(const struct options *o)
{
	bool for_compilers =
		!o->format || !strcmp(o->format->name, "llvm") || !strcmp(o->format->name, "bolt");

	if (!for_compilers)
		log_err("optimize: -f is llvm or bolt, not %s", o->format->name);
	else if (!o->check != !o->optimized)
		log_err("optimize: --check runs the program and the optimized one in turns: give "
			"--optimized FILE with it");
	else if (o->argc < (o->check ? 1 : 2))
		log_err("optimize: needs a program and profiles: 'profilctl optimize PROGRAM "
			"PROFILE...'");
	else
		return CTL_OK;
	return CTL_USAGE;
}

int verb_optimize(const struct options *o)
{
	struct program b = { 0 };
	int status = check_options(o);

	if (status)
		return status;
	if (o->argc > 1) {
		status = program_open(&b, o->argv[0]);
		if (!status)
			status = program_read(&b, o);
		if (!status)
			status = program_write(o, &b);
		profile_free(b.profile);
	}
	if (!status && o->check)
		status = optimize_check(o, o->argv[0]);
	return status;
}
