/* image_file.c - opens the file of an image, while a process has it mapped or later */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"

#include "image_file.h"
#include "symbols/proc/guarded_file.h"
#include "symbols/proc/mounts.h"
#include "profile/profile.h"
#include "symbols/elf/elf_file.h"
#include "base/hex.h"

void image_file_build_id(const struct profil_image *image, char *out, size_t bytes)
{
	size_t n = image->build_id_bytes;

	hex_write(out, bytes, image->build_id,
		  n < PROFIL_BUILD_ID_BYTES ? n : PROFIL_BUILD_ID_BYTES);
}

/*
 * Without a build id the inode must match. stat() shows another device number than the kernel uses
 * on file systems with anonymous devices, as overlayfs and btrfs.
 */
static bool has_inode(const struct profil_image *image, const struct stat *st)
{
	__u32 dev = mounts_kernel_dev(major(st->st_dev), minor(st->st_dev));

	return st->st_ino == image->ino && (dev == image->dev || !major(st->st_dev));
}

static bool is_file_of(int fd, const struct stat *st, const struct profil_image *image)
{
	char want[PROFILE_BUILD_ID_MAX], got[PROFILE_BUILD_ID_MAX];

	if (!image->build_id_bytes)
		return has_inode(image, st);
	image_file_build_id(image, want, sizeof(want));
	elf_file_build_id(fd, got, sizeof(got));
	return !strcmp(want, got);
}

static int open_checked(const char *path, const struct profil_image *image)
{
	struct stat st;
	__cleanup(closep) int fd = guarded_file_open(path, &st);

	return fd >= 0 && is_file_of(fd, &st, image) ? steal_fd(fd) : -ENOENT;
}

/* Opens @path in the root directory of process @pid. */
static int open_below_root(const char *pid, const char *path, const struct profil_image *image)
{
	char full[PATH_MAX + 64];

	snprintf(full, sizeof(full), "/proc/%s/root%s", pid, path);
	return open_checked(full, image);
}

/* Opens @path in the root directory of this process. */
static int open_here(const char *path, const struct profil_image *image)
{
	return open_checked(path, image);
}

static __u64 mount_ns_of(const char *pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%.10s/ns/mnt", pid);
	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

/* Any process in the image's mount namespace will do: all see the same file. */
static int open_in_namespace(const char *path, const struct profil_image *image)
{
	const struct dirent *e;
	int fd = -ENOENT;
	DIR *proc;

	if (!image->mount_ns || image->mount_ns == mount_ns_of("self"))
		return -ENOENT;
	proc = opendir("/proc");
	if (!proc)
		return -ENOENT;
	while ((e = readdir(proc))) {
		if (!isdigit((unsigned char)*e->d_name) ||
		    mount_ns_of(e->d_name) != image->mount_ns)
			continue;
		fd = open_below_root(e->d_name, path, image);
		break;
	}
	closedir(proc);
	return fd;
}

/*
 * map_files opens the mapped inode even if it was deleted or replaced, but needs privileges; the
 * other ways look up the path.
 */
int image_file_open(const struct profil_image *image, const char *path)
{
	char mapped[96], pid[16];
	int fd = -ENOENT;

	snprintf(pid, sizeof(pid), "%u", image->tgid);
	snprintf(mapped, sizeof(mapped), "/proc/%s/map_files/%llx-%llx", pid, image->start,
		 image->end);
	if (image->tgid)
		fd = open_checked(mapped, image);
	if (fd >= 0 || *path != '/')
		return fd;
	if (image->tgid)
		fd = open_below_root(pid, path, image);
	if (fd < 0)
		fd = open_here(path, image);
	return fd < 0 ? open_in_namespace(path, image) : fd;
}
