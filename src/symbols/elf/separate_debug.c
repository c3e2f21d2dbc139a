/* separate_debug.c - finds the separate debug file of an ELF file on this machine */
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "profile/profile.h"
#include "symbols/proc/guarded_file.h"

#include "elf_file.h"
#include "read_budget.h"
#include "separate_debug.h"

const char *debug_file_path = ":.debug:/usr/lib/debug";

#define READ_BYTES 65536

struct debuglink {
	char name[NAME_MAX + 1];
	__u32 crc;
};

struct wanted {
	const char *build_id;
	const struct debuglink *link; /* NULL: search by build id */
	const char *folder;	      /* of the ELF file */
	struct file_account *account; /* that pays for reading others; NULL: theirs */
};

static bool has_crc(int fd, const struct wanted *w)
{
	struct read_budget budget;
	unsigned char bytes[READ_BYTES];
	uLong crc = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t n = -1;

	read_budget_begin(&budget, w->account ?: file_account_of(fd), FILE_TIME_SYMBOLS);
	while (read_budget_left(&budget) && (n = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		crc = crc32(crc, bytes, (uInt)n);
		at += n;
	}
	read_budget_end(&budget);
	return !n && crc == w->link->crc;
}

static bool is_right(int fd, const struct wanted *w)
{
	char build_id[PROFILE_BUILD_ID_MAX];

	if (!*w->build_id)
		return w->link && has_crc(fd, w);
	elf_file_build_id(fd, build_id, sizeof(build_id));
	return !strcmp(build_id, w->build_id);
}

/*
 * Writes where @w is below @folder, an element of debug_file_path: build ids are below absolute
 * folders only. Returns false if there is no such place, or if it is too long.
 */
static bool name_in(char *out, size_t bytes, const char *folder, const struct wanted *w)
{
	bool absolute = *folder == '/';
	int n;

	if (!w->link && !absolute)
		return false;
	if (!w->link)
		n = snprintf(out, bytes, "%s/.build-id/%.2s/%s.debug", folder, w->build_id,
			     w->build_id + 2);
	else if (absolute)
		n = snprintf(out, bytes, "%s%s/%s", folder, w->folder, w->link->name);
	else
		n = snprintf(out, bytes, "%s/%s%s%s", w->folder, folder, *folder ? "/" : "",
			     w->link->name);
	return n > 0 && (size_t)n < bytes;
}

static int search(const struct wanted *w)
{
	char folders[PATH_MAX], path[2 * PATH_MAX], *rest = folders, *folder;

	snprintf(folders, sizeof(folders), "%s", debug_file_path);
	while ((folder = strsep(&rest, ":"))) {
		__cleanup(closep) int fd = -1;

		if (name_in(path, sizeof(path), folder, w))
			fd = guarded_file_open(path, NULL);
		if (fd >= 0 && is_right(fd, w))
			return steal_fd(fd);
	}
	return -ENOENT;
}

/* Reads .gnu_debuglink, whose name must be one of a file in a folder. */
static bool read_link(struct debuglink *link, int fd)
{
	const char *name;
	GElf_Word crc = 0;
	bool found;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	name = dwelf_elf_gnu_debuglink(elf, &crc);
	found = name && *name && !strchr(name, '/') && strlen(name) < sizeof(link->name);
	if (found)
		snprintf(link->name, sizeof(link->name), "%s", name);
	link->crc = crc;
	elf_end(elf);
	return found;
}

static bool read_path(char *out, size_t bytes, int fd)
{
	char self[64];
	ssize_t n;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	n = readlink(self, out, bytes - 1);
	if (n > 0)
		out[n] = '\0';
	return n > 0 && *out == '/';
}

static bool read_folder(char *out, size_t bytes, int fd)
{
	if (!read_path(out, bytes, fd))
		return false;
	*strrchr(out, '/') = '\0';
	return true;
}

int separate_debug_open(int fd, const char *build_id)
{
	struct wanted w = { .build_id = build_id };
	struct debuglink link;
	char folder[PATH_MAX];
	int found = -ENOENT;

	if (strlen(build_id) > 2)
		found = search(&w);
	if (found >= 0 || !read_link(&link, fd) || !read_folder(folder, sizeof(folder), fd))
		return found;
	w.link = &link;
	w.account = file_account_of(fd);
	w.folder = folder;
	return search(&w);
}

char *separate_debug_path(int fd)
{
	char path[PATH_MAX];

	return read_path(path, sizeof(path), fd) ? strdup(path) : NULL;
}

int separate_debug_open_alternate(const char *folder, const char *name, const char *build_id)
{
	const struct wanted w = { .build_id = build_id };
	__cleanup(closep) int found = -1;
	char path[2 * PATH_MAX];

	if (strlen(build_id) <= 2)
		return -ENOENT;
	found = search(&w);
	if (found >= 0 || (*name != '/' && !folder))
		return steal_fd(found);
	snprintf(path, sizeof(path), "%s%s%s", *name == '/' ? "" : folder, *name == '/' ? "" : "/",
		 name);
	found = guarded_file_open(path, NULL);
	return found >= 0 && is_right(found, &w) ? steal_fd(found) : -ENOENT;
}
