/* private_dir.c - the folder of a private daemon's sockets, and stale ones */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#include "private_dir.h"

#define NAME "profilctl."

/* A new folder is locked sooner than this. */
#define LOCK_MAX_S 2

const char *private_dir_parent(void)
{
	const char *tmp = getenv("TMPDIR");

	return tmp && *tmp == '/' && strlen(tmp) <= PRIVATE_DIR_MAX - sizeof("/" NAME "XXXXXX")
		       ? tmp
		       : "/tmp";
}

static void name_sockets(struct private_dir *d)
{
	snprintf(d->socket, sizeof(d->socket), "%s/profil.sock", d->path);
	snprintf(d->notify, sizeof(d->notify), "%s/notify", d->path);
}

/* Says whether the process that made the folder has ended, and so released the lock. */
static bool is_stale(const struct private_dir *d)
{
	__cleanup(closep) int fd = open(d->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && st.st_uid == geteuid() &&
	       time(NULL) - st.st_mtime > LOCK_MAX_S && !flock(fd, LOCK_EX | LOCK_NB);
}

size_t private_dir_stale(bool remove)
{
	char pattern[PRIVATE_DIR_MAX + 16];
	size_t stale = 0;
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/" NAME "??????", private_dir_parent());
	if (glob(pattern, GLOB_NOSORT, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct private_dir d = { .lock = -1 };

		if (strlen(found.gl_pathv[i]) >= sizeof(d.path))
			continue;
		strcpy(d.path, found.gl_pathv[i]);
		name_sockets(&d);
		if (!is_stale(&d))
			continue;
		stale++;
		if (remove)
			private_dir_remove(&d);
	}
	globfree(&found);
	return stale;
}

int private_dir_make(struct private_dir *d, bool served)
{
	private_dir_stale(true);
	*d = (struct private_dir){ .lock = -1 };
	snprintf(d->path, sizeof(d->path), "%s/" NAME "XXXXXX", private_dir_parent());
	if (!mkdtemp(d->path)) {
		int err = -errno;

		*d->path = '\0';
		return err;
	}
	name_sockets(d);
	d->lock = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->lock < 0 || flock(d->lock, LOCK_EX) < 0 || (served && chmod(d->path, 0711) < 0))
		return -errno;
	return 0;
}

void private_dir_remove(struct private_dir *d)
{
	if (!*d->path)
		return;
	unlink(d->notify);
	unlink(d->socket);
	rmdir(d->path);
	*d->path = '\0';
	closep(&d->lock);
	d->lock = -1;
}
