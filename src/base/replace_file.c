/* replace_file.c - replaces a file by a new one once that is complete and on disk */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"

#include "replace_file.h"

/* The folder of @path, without the last name. */
static int folder_of(char *out, size_t bytes, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) + 1 : 0;

	if (n >= bytes)
		return -ENAMETOOLONG;
	memcpy(out, path, n);
	out[n] = '\0';
	if (!n)
		strcpy(out, ".");
	return 0;
}

/*
 * Creates a file without a name, which disappears if the process ends, or else with a temporary
 * name.
 */
static int create(struct replace_file *r, mode_t mode)
{
	char folder[PATH_MAX];
	int fd, err = folder_of(folder, sizeof(folder), r->path);

	if (err < 0)
		return err;
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd < 0 ? -errno : fd;
	if (asprintf(&r->temporary, "%s.XXXXXX", r->path) < 0) {
		r->temporary = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(r->temporary, O_CLOEXEC);
	if (fd >= 0)
		return fd;
	err = -errno;
	free(steal(r->temporary));
	return err;
}

/* Opens a new file, or @path itself if that exists and is not a regular file. */
static int open_new(struct replace_file *r, const char *path, mode_t mode)
{
	struct stat st;
	bool exists = !stat(path, &st);
	int fd;

	if (!exists && errno != ENOENT)
		return -errno;
	if (exists && !S_ISREG(st.st_mode)) {
		fd = open(path, O_WRONLY | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if (exists && access(path, W_OK) < 0)
		return -errno;
	r->path = exists ? realpath(path, NULL) : strdup(path);
	if (!r->path)
		return -errno;
	fd = create(r, mode);
	/* A replaced report keeps its mode. */
	if (fd >= 0 && exists && !r->keep && fchmod(fd, st.st_mode & 0777) < 0)
		errno = 0;
	return fd;
}

int replace_begin(struct replace_file *r, FILE **out, const char *path, mode_t mode, bool keep)
{
	int fd, err;

	*r = (struct replace_file){ .keep = keep };
	fd = open_new(r, path, mode);
	*out = fd < 0 ? NULL : fdopen(fd, "w");
	if (*out)
		return 0;
	err = fd < 0 ? fd : -errno;
	if (fd >= 0)
		close(fd);
	replace_abort(r);
	return err;
}

/* Links the unnamed file @fd to a temporary name in the same folder. */
static int name_temporarily(struct replace_file *r, int fd)
{
	char self[64];
	int err = -EEXIST;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	for (int i = 0; i < 100 && err == -EEXIST; i++) {
		free(r->temporary);
		if (asprintf(&r->temporary, "%s.%d.%d", r->path, (int)getpid(), i) < 0) {
			r->temporary = NULL;
			return -ENOMEM;
		}
		err = linkat(AT_FDCWD, self, AT_FDCWD, r->temporary, AT_SYMLINK_FOLLOW) ? -errno
											: 0;
	}
	if (err < 0)
		free(steal(r->temporary));
	return err;
}

/* Renames the temporary file. At any time there is a complete file at the path or at PATH.old. */
static int rename_over(struct replace_file *r)
{
	__cleanup(freep) char *old = NULL;

	if (r->keep && !access(r->path, F_OK)) {
		if (asprintf(&old, "%s.old", r->path) < 0) {
			old = NULL;
			return -ENOMEM;
		}
		if (!renameat2(AT_FDCWD, r->temporary, AT_FDCWD, r->path, RENAME_EXCHANGE))
			return rename(r->temporary, old) ? -errno : 0;
		if (rename(r->path, old) < 0)
			return -errno;
	}
	return rename(r->temporary, r->path) ? -errno : 0;
}

int replace_cause(FILE *out, int err)
{
	return ferror(out) && errno ? -errno : err;
}

int replace_commit(struct replace_file *r, FILE *out)
{
	int err = 0;

	if (fflush(out))
		return -errno;
	if (ferror(out))
		return replace_cause(out, -EIO);
	if (!r->path)
		return 0;
	if (fsync(fileno(out)) < 0)
		return -errno;
	if (!r->temporary)
		err = name_temporarily(r, fileno(out));
	err = err ?: rename_over(r);
	if (err < 0)
		return err;
	free(steal(r->temporary));
	free(steal(r->path));
	return 0;
}

void replace_abort(struct replace_file *r)
{
	if (r->temporary)
		unlink(r->temporary);
	free(steal(r->temporary));
	free(steal(r->path));
}
