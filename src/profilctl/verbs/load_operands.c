/* load_operands.c - the profiles that operands name: files, folders, patterns, and times of the
 * spool */
#include <errno.h>
#include <fts.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sanitize.h"

#include "profilctl/input/file_sum.h"
#include "profilctl/input/load.h"
#include "load_operands.h"
#include "profilctl/spool/spool.h"
#include "profilctl/util/exit_status.h"

static void closeftsp(FTS **f)
{
	if (*f)
		fts_close(*f);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Says whether the name is one that profiles have in a folder: other files there are left out. */
static bool is_profile(const char *name)
{
	static const char *const ends[] = { ".profil", ".json", ".json.gz" };
	size_t n = strlen(name);

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		size_t end = strlen(ends[i]);

		if (n > end && !strcmp(name + n - end, ends[i]))
			return true;
	}
	return false;
}

/* Adds the profiles in a folder and those below it, without following links. */
static int add_folder(struct file_list *l, const char *path)
{
	char *const roots[] = { (char *)path, NULL };
	__cleanup(closeftsp) FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
	size_t before = l->n;
	char clean[1024];
	const FTSENT *e;

	if (!tree)
		return CTL_ERROR;
	while ((e = fts_read(tree))) {
		if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR)
			log_err("cannot read %s: %s", sanitize(clean, sizeof(clean), e->fts_path),
				strerror(e->fts_errno));
		else if (e->fts_info == FTS_F && is_profile(e->fts_name) &&
			 file_list_add(l, strdup(e->fts_path)) < 0)
			return CTL_ERROR;
	}
	if (l->n > before)
		return CTL_OK;
	log_err("%s has no profiles: files named *.profil, *.json or *.json.gz",
		sanitize(clean, sizeof(clean), path));
	return CTL_ERROR;
}

static int add_path(struct file_list *l, const char *path)
{
	struct stat st;

	if (strcmp(path, "-") && !stat(path, &st) && S_ISDIR(st.st_mode))
		return add_folder(l, path);
	return file_list_add(l, strdup(path)) < 0 ? CTL_ERROR : CTL_OK;
}

/* Adds what the pattern matches; what matches nothing is the name of a file that does not exist. */
static int add_pattern(struct file_list *l, const char *pattern)
{
	glob_t g = { 0 };
	int status = CTL_OK;

	if (glob(pattern, GLOB_NOCHECK, NULL, &g))
		return CTL_ERROR;
	for (size_t i = 0; i < g.gl_pathc && !status; i++)
		status = add_path(l, g.gl_pathv[i]);
	globfree(&g);
	return status;
}

static int add(struct file_list *l, const struct options *o, const char *what)
{
	struct time_span span;
	struct stat st;

	if (!strcmp(what, "-") || !stat(what, &st))
		return add_path(l, what);
	if (time_span_is(&span, what, time(NULL)))
		return spool_files(l, o, &span);
	return add_pattern(l, what);
}

int load_operands(struct profile **out, const struct options *o, char *const *what, size_t n)
{
	struct file_list files = { 0 };
	struct time_span span;
	struct stat st;
	int status = CTL_OK;

	if (n == 1 && stat(*what, &st) < 0 && time_span_is(&span, *what, time(NULL)))
		return spool_read(out, o, &span);
	for (size_t i = 0; i < n && !status; i++)
		status = add(&files, o, what[i]);
	/* A file by itself keeps what a sum has not: its time slices and how its command ended. */
	if (!status && files.n == 1)
		status = load_profile(out, *files.path);
	else if (!status)
		status = file_sum(out, &files);
	file_list_fini(&files);
	return status;
}
