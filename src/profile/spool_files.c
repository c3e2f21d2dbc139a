/* spool_files.c - the files of a spool: their names, and those of a span of time */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/grow.h"

#include "spool_files.h"

static void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* Parses a file name. Returns the part after the seconds; NULL: not a file of a spool. */
static const char *read_name(struct spool_entry *e, const char *name)
{
	struct tm tm = { 0 };
	int behind = 0, number;
	long seconds;

	if (strlen(name) >= sizeof(e->name) ||
	    sscanf(name, "machine-%4d%2d%2dT%2d%2d%2dZ-%10lds%n", &tm.tm_year, &tm.tm_mon,
		   &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &seconds, &behind) != 7 ||
	    !behind || seconds < 0)
		return NULL;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	strcpy(e->name, name);
	e->start = timegm(&tm);
	e->seconds = seconds;
	name += behind;
	if (sscanf(name, ".%3d%n", &number, &behind) == 1)
		name += behind;
	return *name == '.' ? name : NULL;
}

/*
 * Says whether it is a temporary name of replace_file: followed by .PID.N or, on some file systems,
 * .XXXXXX.
 */
static bool is_leftover(const char *suffix)
{
	size_t n = strlen(suffix), all = n;

	while (n && strchr("0123456789.", suffix[n - 1]))
		n--;
	return all - n > 3 || !strncmp(suffix, SPOOL_SUFFIX ".", strlen(SPOOL_SUFFIX) + 1);
}

static int by_name(const void *a, const void *b)
{
	const struct spool_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int is_name(const void *name, const void *entry)
{
	return strcmp(name, ((const struct spool_entry *)entry)->name);
}

/* The start is part of the name, so that names have the order of by_name(). */
bool spool_files_has(const struct spool_entry *all, size_t n, const char *name)
{
	return n && bsearch(name, all, n, sizeof(*all), is_name);
}

/* Lists the spool's files in @dir, or with @leftovers the incomplete ones. */
static int list(struct spool_entry **out, size_t *n, DIR *dir, bool leftovers)
{
	__cleanup(freep) struct spool_entry *all = NULL;
	const struct dirent *d;

	for (*n = 0; (d = readdir(dir));) {
		struct spool_entry e = { .is_profile = false }, *more;
		const char *suffix = read_name(&e, d->d_name);
		struct stat st;

		if (!suffix || is_leftover(suffix) != leftovers ||
		    fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		e.bytes = (__u64)st.st_blocks * 512;
		e.is_profile = !strcmp(suffix, SPOOL_SUFFIX);
		more = grow(all, *n, sizeof(*more));
		if (!more)
			return -ENOMEM;
		all = more;
		all[(*n)++] = e;
	}
	if (all)
		qsort(all, *n, sizeof(*all), by_name);
	*out = steal(all);
	return 0;
}

int spool_files_list(struct spool_entry **out, size_t *n, const char *path, bool leftovers)
{
	__cleanup(closedirp) DIR *dir = opendir(path);

	return dir ? list(out, n, dir, leftovers) : -errno;
}

/* A profile belongs to one of two adjacent spans: the one with its middle. */
static bool is_in(const struct spool_entry *e, time_t since, time_t until)
{
	time_t twice = 2 * e->start + e->seconds;

	return e->is_profile && twice >= 2 * since && twice < 2 * until;
}

/* Says whether the interval of @e contains the middle of the span. */
static bool is_around(const struct spool_entry *e, time_t since, time_t until)
{
	time_t end = until < SPOOL_NO_END ? until : since;
	time_t middle = since + (end - since) / 2;

	return e->is_profile && e->start <= middle && middle < e->start + e->seconds;
}

size_t spool_files_choose(struct spool_entry *all, size_t n, time_t since, time_t until)
{
	size_t chosen = 0;

	for (size_t i = 0; i < n; i++) {
		if (is_in(&all[i], since, until))
			all[chosen++] = all[i];
	}
	for (size_t i = 0; !chosen && i < n; i++) {
		if (is_around(&all[i], since, until))
			all[chosen++] = all[i];
	}
	return chosen;
}
