/* mounts.c - which file systems a process sees, without asking those file systems */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"

#include "mounts.h"

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
