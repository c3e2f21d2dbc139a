/* mounts.c - which file systems a process sees, without asking those file systems */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/cleanup.h"

#include "mounts.h"

#ifndef BTRFS_SUPER_MAGIC
#define BTRFS_SUPER_MAGIC 0x9123683E
#endif

/* virtiofs is not among them: its server is the hypervisor, on which all else waits as well. */
static const char *const served[] = { "fuse", "fuseblk", "nfs",	 "nfs4", "cifs",  "smb3",
				      "9p",   "afs",	 "ceph", "coda", "lustre" };

/* FUSE has subtypes behind a dot, as in "fuse.sshfs". */
static bool is_served(const char *type)
{
	size_t n = strcspn(type, ".");

	for (size_t i = 0; i < sizeof(served) / sizeof(*served); i++) {
		if (n == strlen(served[i]) && !strncmp(type, served[i], n))
			return true;
	}
	return false;
}

static bool is_octal(const char *s)
{
	return s[0] >= '0' && s[0] <= '3' && s[1] >= '0' && s[1] <= '7' && s[2] >= '0' &&
	       s[2] <= '7';
}

/* Blanks and backslashes are written as three octal digits: \040. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '\\' && is_octal(s + 1)) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* Says whether @path is @point or below it. */
static bool is_below(const char *path, const char *point)
{
	size_t n = strlen(point);

	if (n && point[n - 1] == '/')
		n--;
	return !strncmp(path, point, n) && (path[n] == '/' || !path[n]);
}

static char trusted[16];

void mounts_trust(pid_t pid)
{
	snprintf(trusted, sizeof(trusted), "%d", (int)pid);
}

const char *mounts_trusted(void)
{
	return *trusted ? trusted : NULL;
}

/* Splits a line at the fields "MOUNT POINT" and, behind " - ", "TYPE". */
static bool read_line(char *line, char **point, char **type)
{
	char *rest = strstr(line, " - ");

	if (!rest)
		return false;
	*rest = '\0';
	*type = rest + strlen(" - ");
	(*type)[strcspn(*type, " ")] = '\0';
	*point = line;
	for (int i = 0; i < 4; i++) {
		*point = strchr(*point, ' ');
		if (!*point)
			return false;
		++*point;
	}
	(*point)[strcspn(*point, " ")] = '\0';
	unescape(*point);
	return true;
}

/*
 * On the way to @path every mount point is passed. One that covers another is not told from one
 * that is covered: then the answer is that of either which has a server.
 */
bool mounts_has_server(FILE *mountinfo, const char *path, bool is_own)
{
	__cleanup(freep) char *line = NULL;
	bool found = false;
	size_t room = 0;

	while (!found && getline(&line, &room, mountinfo) > 0) {
		char *point, *type;

		found = read_line(line, &point, &type) && is_served(type) &&
			is_below(path, point) && !(is_own && !strcmp(point, "/"));
	}
	return found;
}

bool mounts_has_server_for(const char *pid, const char *path)
{
	__cleanup(fclosep) FILE *f = NULL;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%.16s/mountinfo", pid);
	f = fopen(name, "re");
	return !f || mounts_has_server(f, path, !strcmp(pid, "self"));
}

/* --- kinds of mounts -------------------------------------------------------------------------- */

/* "22 1 8:1 / /point options - type source options": the fields that matter, in the text. */
struct mount_line {
	unsigned int id;
	unsigned int major;
	unsigned int minor;
	bool root; /* the mount point is "/" */
	const char *type;
	const char *source;
};

/* Reads the line at *@at and moves on to the next; false: there is none. */
static bool next_mount(struct mount_line *out, const char **at)
{
	const char *line = *at, *end = strchr(line, '\n'), *rest;
	char *after;

	if (!end)
		return false;
	*at = end + 1;
	*out = (struct mount_line){ .id = (unsigned int)strtoul(line, &after, 10), .type = "" };
	strtoul(after, &after, 10);
	out->major = (unsigned int)strtoul(after, &after, 10);
	if (*after == ':')
		out->minor = (unsigned int)strtoul(after + 1, &after, 10);
	rest = after < end && *after == ' ' ? memchr(after + 1, ' ', (size_t)(end - after - 1))
					    : NULL;
	out->root = rest && rest[1] == '/' && rest[2] == ' ';
	rest = rest ? memmem(rest, (size_t)(end - rest), " - ", strlen(" - ")) : NULL;
	out->type = rest ? rest + strlen(" - ") : "";
	out->source = rest ? memchr(out->type, ' ', (size_t)(end - out->type)) : NULL;
	return true;
}

static bool find_mount(struct mount_line *out, const char *text, unsigned int id)
{
	while (next_mount(out, &text)) {
		if (out->id == id)
			return true;
	}
	return false;
}

static bool find_superblock(struct mount_line *out, const char *text, const struct mount_line *m)
{
	while (next_mount(out, &text)) {
		if (out->major == m->major && out->minor == m->minor)
			return true;
	}
	return false;
}

static bool has_type(const struct mount_line *m, const char *type)
{
	size_t n = strlen(type);

	return !strncmp(m->type, type, n) && (m->type[n] == ' ' || m->type[n] == '.');
}

/*
 * The kind of a mount of this namespace. Only root mounts overlays here, but users may mount what
 * they serve themselves: FUSE, ecryptfs on any folder of theirs, images on loop devices.
 */
static enum mount_kind own_kind(const struct mount_line *m)
{
	if (!*m->type)
		return MOUNT_FOREIGN;
	if (m->root) /* this program was read from it */
		return MOUNT_LOCAL;
	if (has_type(m, "fuse") || has_type(m, "fuseblk") || has_type(m, "ecryptfs"))
		return MOUNT_FOREIGN;
	if (m->source && !strncmp(m->source, " /dev/loop", strlen(" /dev/loop")))
		return MOUNT_FOREIGN;
	for (size_t i = 0; i < sizeof(served) / sizeof(*served); i++) {
		if (has_type(m, served[i]))
			return MOUNT_NETWORK;
	}
	return MOUNT_LOCAL;
}

enum mount_kind mounts_kind(const char *own, const char *other, unsigned int id)
{
	struct mount_line m, same;

	if (find_mount(&m, own, id))
		return own_kind(&m);
	if (find_mount(&m, other, id) && find_superblock(&same, own, &m))
		return own_kind(&same);
	return MOUNT_FOREIGN;
}

/* --- the kernel's device numbers -------------------------------------------------------------- */

/* The device of mount @id in @mountinfo; false: there is no such mount. */
static bool find_device(__u32 *dev, FILE *mountinfo, __u64 id)
{
	__cleanup(freep) char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, mountinfo) > 0) {
		unsigned long long mount;
		unsigned int major, minor;

		if (sscanf(line, "%llu %*u %u:%u", &mount, &major, &minor) == 3 && mount == id) {
			*dev = mounts_kernel_dev(major, minor);
			return true;
		}
	}
	return false;
}

int mounts_file(struct mounts_file *out, const char *path)
{
	__cleanup(fclosep) FILE *f = NULL;
	struct statx st;

	if (statx(AT_FDCWD, path, 0, STATX_INO | STATX_MNT_ID, &st) < 0)
		return -errno;
	out->ino = st.stx_ino;
	out->dev = mounts_kernel_dev(st.stx_dev_major, st.stx_dev_minor);
	f = fopen("/proc/self/mountinfo", "re");
	if (f && st.stx_mask & STATX_MNT_ID)
		find_device(&out->dev, f, st.stx_mnt_id);
	return 0;
}

__u32 mounts_file_dev(int fd, const struct stat *st)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0 || fs.f_type == OVERLAYFS_SUPER_MAGIC ||
	    fs.f_type == BTRFS_SUPER_MAGIC)
		return 0;
	return mounts_kernel_dev(major(st->st_dev), minor(st->st_dev));
}
