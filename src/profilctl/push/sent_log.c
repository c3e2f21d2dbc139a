/* sent_log.c - the names of the spool's files that were sent, over restarts */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"
#include "base/replace_file.h"
#include "sent_log.h"

#define COMPACT_MIN 1000

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Adds @name to the array, sorted. */
static int insert(struct sent_log *s, const char *name)
{
	char(*more)[sizeof(s->last)] = grow(s->name, s->n, sizeof(*more));
	size_t at = s->n;

	if (!more)
		return -ENOMEM;
	s->name = more;
	while (at && strcmp(more[at - 1], name) > 0)
		at--;
	memmove(more[at + 1], more[at], (s->n - at) * sizeof(*more));
	snprintf(more[at], sizeof(*more), "%s", name);
	s->n++;
	return 0;
}

/* A line that a crash has cut is not the name of a file. */
static int read_names(struct sent_log *s)
{
	__cleanup(fclosep) FILE *f = fopen(s->path, "re");
	char line[sizeof(s->last) + 1];
	int err = f ? 0 : -errno;

	while (!err && fgets(line, sizeof(line), f)) {
		size_t n = strcspn(line, "\n");

		if (!n || line[n] != '\n' || n >= sizeof(s->last))
			continue;
		line[n] = '\0';
		memcpy(s->last, line, n + 1);
		err = insert(s, line);
	}
	return err;
}

/* Opens and locks the file at the path, which compaction can replace in between. */
static int open_locked(struct sent_log *s)
{
	struct stat own, now;

	do {
		closep(&s->fd);
		s->fd = open(s->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
		if (s->fd < 0)
			return -errno;
		if (flock(s->fd, LOCK_EX | LOCK_NB) < 0)
			return errno == EWOULDBLOCK ? -EBUSY : -errno;
		if (fstat(s->fd, &own) < 0 || stat(s->path, &now) < 0)
			return -errno;
	} while (own.st_ino != now.st_ino);
	return 0;
}

/* Ends a line that a crash has cut. */
static int complete_line(const struct sent_log *s)
{
	char last = '\n';
	off_t n = lseek(s->fd, 0, SEEK_END);

	if (n > 0 && pread(s->fd, &last, 1, n - 1) < 0)
		return -errno;
	return last == '\n' || write(s->fd, "\n", 1) == 1 ? 0 : -errno;
}

int sent_log_open(struct sent_log *s, const char *path)
{
	int err;

	*s = (struct sent_log){ .fd = -1, .path = strdup(path) };
	err = s->path ? open_locked(s) ?: complete_line(s) ?: read_names(s) : -ENOMEM;
	if (err < 0)
		sent_log_close(s);
	return err;
}

void sent_log_close(struct sent_log *s)
{
	closep(&s->fd);
	free(s->path);
	free(s->name);
	*s = (struct sent_log){ .fd = -1 };
}

bool sent_log_has(const struct sent_log *s, const char *name)
{
	return s->n && bsearch(name, s->name, s->n, sizeof(*s->name), by_name);
}

int sent_log_add(struct sent_log *s, const char *name)
{
	char line[sizeof(s->last) + 1];
	int n = snprintf(line, sizeof(line), "%s\n", name), err = insert(s, name);

	if (err < 0)
		return err;
	snprintf(s->last, sizeof(s->last), "%s", name);
	if (write(s->fd, line, (size_t)n) != n || fdatasync(s->fd) < 0)
		return errno ? -errno : -EIO;
	return 0;
}

/* Keeps the last name: it says up to when the spool was sent. */
int sent_log_compact(struct sent_log *s, const struct spool_entry *spool, size_t n)
{
	struct replace_file r = { 0 };
	FILE *out = NULL;
	size_t kept = 0;
	int err;

	if (s->n < COMPACT_MIN || s->n < 2 * n)
		return 0;
	for (size_t i = 0; i < s->n; i++) {
		if (spool_files_has(spool, n, s->name[i]) || !strcmp(s->name[i], s->last))
			memmove(s->name[kept++], s->name[i], sizeof(*s->name));
	}
	s->n = kept;
	err = replace_begin(&r, &out, s->path, 0640, false);
	for (size_t i = 0; !err && i < s->n; i++) {
		if (strcmp(s->name[i], s->last) != 0)
			fprintf(out, "%s\n", s->name[i]);
	}
	if (!err && *s->last)
		fprintf(out, "%s\n", s->last);
	if (!err)
		err = replace_commit(&r, out);
	replace_abort(&r);
	if (out && fclose(out) && !err)
		err = -errno;
	return err ? err : open_locked(s);
}
