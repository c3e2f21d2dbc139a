/* interpreters.c - writes the descriptors of interpreters that the machine's profile uses */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/replace_file.h"
#include "base/sanitize.h"
#include "core/interpreters_file.h"
#include "profile/interpreted.h"
#include "symbols/interpreters/interpreter.h"
#include "symbols/interpreters/running.h"
#include "symbols/proc/guarded_file.h"
#include "symbols/proc/mounts.h"
#include "verb.h"

/* Where packages install interpreters. */
static const char *const places[] = {
	"/usr/bin/python3.*",
	"/usr/lib/*/libpython3*.so.*",
	"/usr/lib64/libpython3*.so.*",
	"/usr/lib/libpython3*.so.*",
	"/usr/local/bin/python3.*",
	"/usr/local/lib/libpython3*.so.*",
	"/usr/bin/node",
	"/usr/bin/nodejs",
	"/usr/local/bin/node",
	"/usr/lib/*/libnode.so.*",
	"/usr/bin/php[0-9]*",
	"/usr/sbin/php-fpm*",
	"/usr/lib/apache2/modules/libphp*.so",
	"/usr/lib/*/libphp*.so",
	"/usr/lib/*/libruby*.so.*",
	"/usr/lib64/libruby*.so.*",
	"/usr/local/lib/libruby*.so.*",
	"/usr/bin/perl",
	"/usr/lib/*/libperl.so.*",
	"/usr/local/bin/perl",
	"/usr/lib/jvm/*/lib/server/libjvm.so",
};

static struct profil_unwind_file *file_of(struct profil_interpreters_file *in, int fd)
{
	struct profil_unwind_file *f;
	struct stat st;
	__u32 dev;

	if (fstat(fd, &st) < 0)
		return NULL;
	dev = mounts_file_dev(fd, &st);
	for (__u32 i = 0; i < in->files; i++) {
		if (in->file[i].ino == st.st_ino && in->file[i].dev == dev)
			return &in->file[i];
	}
	if (in->files == PROFIL_INTERPRETER_FILES)
		return NULL;
	f = &in->file[in->files++];
	f->ino = st.st_ino;
	f->dev = dev;
	return f;
}

/* The number of @d, which is added if it is new; 0: there is no room. */
static __u32 number_of(struct profil_interpreters_file *in, const struct profil_interpreter *d)
{
	for (__u32 i = 0; i < in->interpreters; i++) {
		if (interpreter_is_same(&in->interpreter[i], d))
			return i + 1;
	}
	if (in->interpreters == PROFIL_INTERPRETERS)
		return 0;
	in->interpreter[in->interpreters++] = *d;
	return in->interpreters;
}

/* Opens @path; -EPERM if the descriptor is a copy, since the kernel finds the file by its inode. */
static int open_local(const char *path, struct stat *st)
{
	__cleanup(closep) int fd = guarded_file_open(path, st);
	struct stat own;

	if (fd < 0)
		return fd;
	if (fstat(fd, &own) < 0 || own.st_ino != st->st_ino || own.st_dev != st->st_dev)
		return -EPERM;
	return steal_fd(fd);
}

/* Adds the file @path if it is an interpreter. Returns its number; 0: it is none. */
static __u32 add(struct profil_interpreters_file *in, const char *path, bool of_root)
{
	struct stat st = { 0 };
	__cleanup(closep) int fd = open_local(path, &st);
	struct profil_unwind_file *f;
	struct profil_interpreter d;
	char name[256];

	if (fd < 0 || (of_root && st.st_uid) || interpreter_open(&d, fd, path))
		return 0;
	f = file_of(in, fd);
	if (!f || f->interpreter)
		return f ? f->interpreter : 0;
	f->interpreter = number_of(in, &d);
	if (profil_interpreter_compiles(&d))
		f->anonymous = f->interpreter;
	if (f->interpreter)
		printf("%-8s %s\n", interpreted_language(d.language),
		       sanitize(name, sizeof(name), path));
	return f->interpreter;
}

/* Says that process @pid compiles code by interpreter @number: so do all that execute its program.
 */
static void add_program(struct profil_interpreters_file *in, pid_t pid, __u32 number)
{
	__cleanup(closep) int fd = -1;
	struct profil_unwind_file *f;
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	fd = open_local(path, &st);
	f = fd < 0 ? NULL : file_of(in, fd);
	if (f)
		f->anonymous = number;
}

/* The same of the launcher of Java's virtual machine @number, which is the file @path. */
static void add_launcher(struct profil_interpreters_file *in, const char *path, __u32 number)
{
	__cleanup(closep) int fd = -1;
	struct profil_unwind_file *f;
	const char *lib = strstr(path, "/lib/server/");
	char launcher[PATH_MAX];
	struct stat st;

	if (!number || in->interpreter[number - 1].kind != PROFIL_INTERPRETER_HOTSPOT || !lib ||
	    snprintf(launcher, sizeof(launcher), "%.*s/bin/java", (int)(lib - path), path) >=
		    (int)sizeof(launcher))
		return;
	fd = open_local(launcher, &st);
	f = fd < 0 ? NULL : file_of(in, fd);
	if (f)
		f->anonymous = number;
}

static void add_installed(struct profil_interpreters_file *in)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		glob_t found;

		if (glob(places[i], 0, NULL, &found))
			continue;
		for (size_t k = 0; k < found.gl_pathc; k++)
			add_launcher(in, found.gl_pathv[k], add(in, found.gl_pathv[k], false));
		globfree(&found);
	}
}

/* Any user can run a file of its own: these would use up the room. */
static int add_running(struct profil_interpreters_file *in)
{
	struct running_interpreter *r = NULL;
	size_t n = 0;
	int err = running_interpreters(&r, &n);

	for (size_t i = 0; i < n && !err; i++) {
		__u32 number = r[i].language ? add(in, r[i].path, true) : 0;

		if (number && profil_interpreter_compiles(&in->interpreter[number - 1]))
			add_program(in, r[i].pid, number);
	}
	running_free(r, n);
	return err;
}

static int write_file(const struct profil_interpreters_file *in)
{
	struct replace_file file = { 0 };
	FILE *out = NULL;
	int err;

	if (mkdir("/var/lib/profil", 0755) < 0 && errno != EEXIST)
		return -errno;
	err = replace_begin(&file, &out, PROFIL_INTERPRETERS_FILE, 0644, false);
	if (err)
		return err;
	err = fwrite(in, sizeof(*in), 1, out) == 1 ? replace_commit(&file, out) : -EIO;
	replace_abort(&file);
	fclose(out);
	return err;
}

static void add_named(struct profil_interpreters_file *in, const struct options *o)
{
	for (int i = 0; i < o->argc; i++) {
		if (!add(in, o->argv[i], false))
			log_warning("%s: is no interpreter that profilctl knows", o->argv[i]);
	}
}

int verb_interpreters(const struct options *o)
{
	__cleanup(freep) struct profil_interpreters_file *in = calloc(1, sizeof(*in));
	int err;

	if (geteuid()) {
		log_err("interpreters: permission denied: the machine's profile takes only what "
			"root has written (run as root)");
		return CTL_DENIED;
	}
	if (!in) {
		log_err("interpreters: out of memory");
		return CTL_ERROR;
	}
	memcpy(in->magic, PROFIL_INTERPRETERS_MAGIC, sizeof(in->magic));
	in->version = PROFIL_INTERPRETERS_VERSION;
	add_named(in, o);
	if (!o->argc)
		add_installed(in);
	err = o->argc ? 0 : add_running(in);
	if (err) {
		log_err("cannot read which interpreters run: %s", strerror(-err));
		return CTL_ERROR;
	}
	err = write_file(in);
	if (!err)
		return CTL_OK;
	log_err("cannot write %s: %s", PROFIL_INTERPRETERS_FILE, strerror(-err));
	return CTL_ERROR;
}
