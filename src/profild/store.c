/* store.c - the persistent store: fds that outlive the daemon, as bpffs pins or in systemd */
#include <bpf/bpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "profild/config.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "store.h"

#define BPFFS "/sys/fs/bpf"

struct name {
	struct name *next;
	char text[48];
};

struct store {
	enum store_kind kind;
	bool left; /* an earlier daemon has left fds */
	char dir[64];
	struct name *known; /* put or taken by this daemon */
	/* The fds that the service manager has passed. */
	int nfds;
	char **names;
};

static bool is_known(const struct store *s, const char *name)
{
	const struct name *n = s->known;

	while (n && strcmp(n->text, name) != 0)
		n = n->next;
	return n;
}

static void remember(struct store *s, const char *name)
{
	struct name *n = is_known(s, name) ? NULL : calloc(1, sizeof(*n));

	if (!n)
		return;
	snprintf(n->text, sizeof(n->text), "%s", name);
	n->next = s->known;
	s->known = n;
}

static void forget(struct store *s, const char *name)
{
	struct name **place = &s->known, *n;

	while (*place && strcmp((*place)->text, name) != 0)
		place = &(*place)->next;
	n = *place;
	if (n) {
		*place = n->next;
		free(n);
	}
}

/* FNV-1a of the socket's absolute path: each daemon has its own directory, also after a restart. */
static uint64_t key_of(const char *path)
{
	char full[PATH_MAX], cwd[PATH_MAX / 2] = "";
	uint64_t hash = 14695981039346656037u;

	if (*path != '/' && !getcwd(cwd, sizeof(cwd)))
		*cwd = 0;
	snprintf(full, sizeof(full), "%s%s%s", cwd, *cwd ? "/" : "", path);
	for (const char *c = full; *c; c++)
		hash = (hash ^ (uint8_t)*c) * 1099511628211u;
	return hash;
}

static bool have_bpffs(void)
{
	struct statfs fs;

	return statfs(BPFFS, &fs) == 0 && (unsigned long)fs.f_type == BPF_FS_MAGIC;
}

/* Refuses a directory of another user: it may hold maps that this user can still write. */
static bool is_ours(const char *dir)
{
	struct statfs fs;
	struct stat st;

	if (lstat(dir, &st) < 0 || statfs(dir, &fs) < 0)
		return false;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077) &&
	       (unsigned long)fs.f_type == BPF_FS_MAGIC;
}

static int directory_open(struct store *s)
{
	if (mkdir(s->dir, 0700) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (!is_ours(s->dir)) {
		log_warning("cannot keep profiles in %s: only this user must be able to use that "
			    "directory (remove it)",
			    s->dir);
		return -EPERM;
	}
	s->left = true;
	return 0;
}

int store_open(struct store **out, const struct config *config)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	if (config->fd_store) {
		s->kind = STORE_MANAGER;
		s->nfds = sd_listen_fds_with_names(0, &s->names);
		s->left = s->nfds > 0;
	} else if (!config->ephemeral && have_bpffs()) {
		snprintf(s->dir, sizeof(s->dir), BPFFS "/profil-%016llx",
			 (unsigned long long)key_of(config->socket_path));
		if (directory_open(s) == 0)
			s->kind = STORE_BPFFS;
	}
	if (s->kind == STORE_NONE && !config->ephemeral)
		log_notice("no bpffs at " BPFFS
			   " and no service manager's store: profiles end with "
			   "this daemon");
	*out = s;
	return 0;
}

struct store *store_close(struct store *s)
{
	if (!s)
		return NULL;
	/* Tries twice: the first failure may be a temporary ENOMEM. */
	if (s->kind == STORE_BPFFS && rmdir(s->dir) < 0 && rmdir(s->dir) < 0)
		log_warning("cannot remove %s: %s; remove it by hand", s->dir, strerror(errno));
	while (s->known)
		forget(s, s->known->text);
	if (s->names) {
		for (char **name = s->names; *name; name++)
			free(*name);
	}
	free(s->names);
	free(s);
	return NULL;
}

void store_abandon(struct store *s)
{
	if (s->left)
		s->kind = STORE_NONE;
}

enum store_kind store_kind(const struct store *s)
{
	return s->kind;
}

static void path_of(const struct store *s, const char *name, char *path, size_t bytes)
{
	snprintf(path, bytes, "%s/%s", s->dir, name);
}

int store_put(struct store *s, const char *name, int fd)
{
	char text[128];

	remember(s, name);
	if (s->kind == STORE_BPFFS) {
		path_of(s, name, text, sizeof(text));
		return bpf_obj_pin(fd, text) < 0 ? -errno : 0;
	}
	if (s->kind == STORE_MANAGER) {
		int err;

		/* poll() fails for maps other than rings, and systemd would drop them. */
		snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
		err = sd_pid_notify_with_fds(0, 0, text, &fd, 1);
		return err < 0 ? err : 0;
	}
	return 0;
}

void store_drop(struct store *s, const char *name)
{
	char text[128];

	if (s->kind == STORE_BPFFS) {
		path_of(s, name, text, sizeof(text));
		unlink(text);
	} else if (s->kind == STORE_MANAGER) {
		snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s", name);
		sd_notify(0, text);
	}
	forget(s, name); /* last: frees @name if it is n->text */
}

struct wanted {
	const char *name;
	const char *map; /* the kernel's name of the map; NULL: a link */
	size_t value_bytes;
};

/*
 * Says whether @fd is a map or a link: what /proc shows of it, "anon_inode:bpf-map" or
 * "anon_inode:bpf_link". Returns 1, 0 or a negative errno.
 */
static int is_object(int fd, const char *kind)
{
	char path[64], shown[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, shown, sizeof(shown) - 1);
	if (n < 0)
		return -errno;
	shown[n] = '\0';
	return strstr(shown, kind) != NULL;
}

/* The same for what is wanted: a failure to look says nothing about what @fd is. */
static int is_wanted(int fd, const struct wanted *w)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);
	int found = is_object(fd, w->map ? "bpf-map" : "bpf_link");

	if (found <= 0 || !w->map)
		return found;
	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		return -errno;
	return !strncmp(info.name, w->map, sizeof(info.name) - 1) &&
	       info.value_size == w->value_bytes;
}

static int take_pinned(struct store *s, const struct wanted *w)
{
	__cleanup(closep) int fd = -1;
	char path[128];
	int found;

	path_of(s, w->name, path, sizeof(path));
	fd = bpf_obj_get(path);
	if (fd < 0)
		return -errno;
	found = is_wanted(fd, w);
	if (found <= 0)
		return found ?: -ENOENT;
	remember(s, w->name);
	return steal_fd(fd);
}

static int take(struct store *s, const struct wanted *w)
{
	int fd, found;

	if (s->kind == STORE_BPFFS)
		return take_pinned(s, w);
	for (int i = 0; i < s->nfds; i++) {
		found = strcmp(s->names[i], w->name) ? 0 : is_wanted(SD_LISTEN_FDS_START + i, w);
		if (found < 0)
			return found;
		if (!found)
			continue;
		/* The passed fd itself stays open until store_sweep(). */
		fd = fcntl(SD_LISTEN_FDS_START + i, F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			return -errno;
		remember(s, w->name);
		return fd;
	}
	return -ENOENT;
}

int store_take_map(struct store *s, const char *name, const char *kernel_name, size_t value_bytes)
{
	return take(s, &(struct wanted){ name, kernel_name, value_bytes });
}

int store_take_link(struct store *s, const char *name)
{
	return take(s, &(struct wanted){ .name = name });
}

static void sweep_bpffs(struct store *s)
{
	DIR *dir = opendir(s->dir);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (*entry->d_name != '.' && !is_known(s, entry->d_name))
			store_drop(s, entry->d_name);
	}
	if (dir)
		closedir(dir);
}

void store_sweep(struct store *s)
{
	if (s->kind == STORE_BPFFS)
		sweep_bpffs(s);
	for (int i = 0; i < s->nfds; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		/* Sockets were passed for listening. */
		if (sd_is_socket(fd, AF_UNSPEC, 0, -1) > 0)
			continue;
		if (!is_known(s, s->names[i]))
			store_drop(s, s->names[i]);
		close(fd);
	}
	s->nfds = 0;
}

void store_clear(struct store *s)
{
	while (s->known)
		store_drop(s, s->known->text);
	store_sweep(s);
}
