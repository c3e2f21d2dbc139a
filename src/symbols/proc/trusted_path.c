/* trusted_path.c - says whether root and this user alone decide what a path leads to */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#include "trusted_path.h"

#define LINKS_MAX 40

struct walk {
	int folder;
	bool shared;		 /* others may create files in it */
	char rest[2 * PATH_MAX]; /* of the path, below @folder */
	unsigned int links;
};

static bool is_of_us(const struct stat *st)
{
	return !st->st_uid || st->st_uid == geteuid();
}

static bool may_be_of_others(const struct stat *st)
{
	return st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && st->st_gid);
}

/* In a sticky folder others cannot replace what is not theirs. */
static bool only_we_change(const struct stat *st)
{
	return is_of_us(st) &&
	       (!may_be_of_others(st) || (S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX));
}

static bool enter(struct walk *w, int fd)
{
	struct stat st;

	closep(&w->folder);
	w->folder = fd;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	w->shared = may_be_of_others(&st);
	return only_we_change(&st);
}

static bool enter_root(struct walk *w)
{
	return enter(w, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Puts the target of the link @fd before the rest of the path. */
static bool follow(struct walk *w, int fd)
{
	char target[PATH_MAX], rest[2 * PATH_MAX];
	ssize_t n = readlinkat(fd, "", target, sizeof(target) - 1);

	if (n <= 0 || ++w->links > LINKS_MAX)
		return false;
	target[n] = '\0';
	memcpy(rest, w->rest, sizeof(rest));
	if ((size_t)snprintf(w->rest, sizeof(w->rest), "%s/%s", target, rest) >= sizeof(w->rest))
		return false;
	return *target != '/' || enter_root(w);
}

/* Takes the next component off the rest of the path; false: there is none. */
static bool next_component(struct walk *w, char *out)
{
	const char *from = w->rest + strspn(w->rest, "/");
	size_t n = strcspn(from, "/");

	if (!n || n > NAME_MAX)
		return false;
	memcpy(out, from, n);
	out[n] = '\0';
	memmove(w->rest, from + n, strlen(from + n) + 1);
	return true;
}

static enum path_trust walk(struct walk *w)
{
	char name[NAME_MAX + 1];

	while (next_component(w, name)) {
		__cleanup(closep) int fd = openat(w->folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		struct stat st;

		if (fd < 0)
			return errno == ENOENT && !w->shared ? PATH_NOTHING : PATH_UNTRUSTED;
		if (fstat(fd, &st) < 0 || !is_of_us(&st))
			return PATH_UNTRUSTED;
		if (S_ISLNK(st.st_mode) ? !follow(w, fd)
					: S_ISDIR(st.st_mode) && !enter(w, steal_fd(fd)))
			return PATH_UNTRUSTED;
		if (S_ISREG(st.st_mode))
			return only_we_change(&st) && !w->rest[strspn(w->rest, "/")]
				       ? PATH_TRUSTED
				       : PATH_UNTRUSTED;
	}
	return PATH_UNTRUSTED; /* a folder or a device */
}

enum path_trust path_trust(const char *path)
{
	struct walk w = { .folder = -1 };
	enum path_trust trust = PATH_UNTRUSTED;

	if (*path == '/' && strlen(path) < PATH_MAX && enter_root(&w)) {
		strcpy(w.rest, path);
		trust = walk(&w);
	}
	closep(&w.folder);
	return trust;
}
