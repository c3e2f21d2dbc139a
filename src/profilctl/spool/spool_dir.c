/* spool_dir.c - the folder of a spool: writing, and rotation by age and size */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#include "profile/json.h"
#include "base/grow.h"
#include "base/gzip.h"
#include "base/replace_file.h"
#include "spool_dir.h"

#define SAME_NAME_MAX 100

static int clean(struct spool_dir *d)
{
	__cleanup(freep) struct spool_entry *all = NULL;
	size_t n = 0;
	int err = spool_files_list(&all, &n, d->path, true);

	for (size_t i = 0; !err && i < n; i++)
		unlinkat(d->fd, all[i].name, 0);
	return err;
}

int spool_dir_open(struct spool_dir *d, const char *path)
{
	int err;

	d->path = path;
	d->fd = -1;
	if (mkdir(path, 0750) < 0 && errno != EEXIST)
		return -errno;
	d->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->fd < 0)
		return -errno;
	if (flock(d->fd, LOCK_EX | LOCK_NB) < 0)
		err = errno == EWOULDBLOCK ? -EBUSY : -errno;
	else
		err = faccessat(d->fd, ".", W_OK, AT_EACCESS) < 0 ? -errno : clean(d);
	if (err < 0)
		spool_dir_close(d);
	return err;
}

/* Removes the oldest file that waits. */
static void forget_first(struct spool_dir *d)
{
	free(d->waiting[0].text);
	memmove(d->waiting, d->waiting + 1, --d->nwaiting * sizeof(*d->waiting));
}

void spool_dir_close(struct spool_dir *d)
{
	while (d->nwaiting)
		forget_first(d);
	free(steal(d->waiting));
	closep(&d->fd);
}

/* Finds an unused path in @d. Returns 0 or a negative errno. */
static int free_path(char **out, const struct spool_dir *d, const struct spool_file *f)
{
	char begin[64], number[8] = "";
	struct tm tm;

	strftime(begin, sizeof(begin), "machine-%Y%m%dT%H%M%SZ", gmtime_r(&f->started, &tm));
	for (int i = 2; i < SAME_NAME_MAX; i++) {
		if (asprintf(out, "%s/%s-%lds%s%s", d->path, begin, f->seconds, number, f->suffix) <
		    0) {
			*out = NULL;
			return -ENOMEM;
		}
		if (access(*out, F_OK) < 0)
			return errno == ENOENT ? 0 : -errno;
		free(steal(*out));
		snprintf(number, sizeof(number), ".%d", i);
	}
	return -EEXIST;
}

static int write_json(FILE *out, const struct profile *p)
{
	__cleanup(freep) char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	int err = f ? json_write(f, p, true) : -ENOMEM;

	if (f && fclose(f) && !err)
		err = -ENOMEM;
	return err ? err : gzip_write(out, text, n);
}

static int write_file(const struct spool_dir *d, const struct spool_file *f)
{
	__cleanup(freep) char *path = NULL;
	struct replace_file r = { 0 };
	FILE *out = NULL;
	int err = free_path(&path, d, f);

	if (!err)
		err = replace_begin(&r, &out, path, 0640, false);
	errno = 0;
	if (!err && fwrite(f->text, f->bytes, 1, out) != 1)
		err = replace_cause(out, -EIO);
	if (!err)
		err = replace_cause(out, replace_commit(&r, out));
	replace_abort(&r);
	if (out && fclose(out) && !err)
		err = -errno;
	if (err < 0)
		return err;
	return fsync(d->fd) < 0 ? -errno : 0;
}

static int add_file(struct spool_dir *d, const struct profile *p, const char *suffix,
		    int (*write)(FILE *out, const struct profile *p))
{
	struct spool_file *more = grow(d->waiting, d->nwaiting, sizeof(*more));
	__cleanup(freep) char *text = NULL;
	FILE *out;
	size_t n;
	int err;

	if (!more)
		return -ENOMEM;
	d->waiting = more;
	more += d->nwaiting;
	*more = (struct spool_file){ .started = p->started };
	more->seconds = (long)((p->duration_ns + 500000000u) / 1000000000u);
	snprintf(more->suffix, sizeof(more->suffix), "%s", suffix);

	out = open_memstream(&text, &n);
	if (!out)
		return -ENOMEM;
	err = write(out, p);
	if (fclose(out) || err)
		return err ? err : -ENOMEM;
	more->text = steal(text);
	more->bytes = n;
	d->nwaiting++;
	return 0;
}

int spool_dir_add(struct spool_dir *d, const struct profile *p, const struct format *format)
{
	char suffix[32];
	int err = add_file(d, p, SPOOL_SUFFIX, write_json);

	if (err || !format || !format->write)
		return err;
	snprintf(suffix, sizeof(suffix), ".%s",
		 format->write == pprof_write ? "pb.gz" : format->name);
	return add_file(d, p, suffix, format->write);
}

static void drop_oldest(struct spool_dir *d)
{
	__u64 bytes = 0;

	for (size_t i = 0; i < d->nwaiting; i++)
		bytes += d->waiting[i].bytes;
	while (bytes > SPOOL_WAITING_BYTES) {
		d->dropped += !strcmp(d->waiting[0].suffix, SPOOL_SUFFIX);
		bytes -= d->waiting[0].bytes;
		forget_first(d);
	}
}

int spool_dir_flush(struct spool_dir *d)
{
	int err = 0;

	while (d->nwaiting && !err) {
		err = write_file(d, &d->waiting[0]);
		if (!err)
			forget_first(d);
	}
	drop_oldest(d);
	return err;
}

int spool_dir_rotate(struct spool_dir *d, time_t now)
{
	__cleanup(freep) struct spool_entry *all = NULL;
	__u64 bytes = 0;
	size_t n;
	int err = spool_files_list(&all, &n, d->path, false);

	if (err < 0 || !all)
		return err;
	for (size_t i = 0; i < n; i++)
		bytes += all[i].bytes;
	for (size_t i = 0; i < n; i++) {
		if (bytes <= d->max_bytes && all[i].start + all[i].seconds + d->max_age_s > now)
			break;
		if (unlinkat(d->fd, all[i].name, 0) < 0 && errno != ENOENT)
			return -errno;
		bytes -= all[i].bytes;
	}
	return 0;
}
