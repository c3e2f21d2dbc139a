/* file_account.c - what the files of each user may take while they are read */
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/subids.h"
#include "symbols/proc/mounts.h"

#include "file_account.h"

#define WINDOW_NS 60000000000ull
#define OWNERS_MAX 255

struct file_account {
	uid_t owner;
	__u64 bytes;
	__u64 cpu_ns; /* in this minute */
};

/* Shared by all threads. The first account is that of any maker, and of owners beyond the limit. */
static struct {
	pthread_mutex_t mutex;
	struct subids *subids;
	struct file_account account[1 + OWNERS_MAX];
	size_t n;
	__u64 window_ns; /* its start */
} all = { .mutex = PTHREAD_MUTEX_INITIALIZER, .account = { { .owner = (uid_t)-1 } }, .n = 1 };

/* --- makers ----------------------------------------------------------------------------------- */

static bool is_found_at(const char *path, const struct stat *st)
{
	struct stat here;

	return *path == '/' && !mounts_has_server_for("self", path) && !stat(path, &here) &&
	       here.st_dev == st->st_dev && here.st_ino == st->st_ino;
}

/* Whether a server says to whom the file belongs, or it is a copy of such a file. */
static bool is_served(int fd, const char *path)
{
	struct statfs fs;

	if (!strncmp(path, "/memfd:", strlen("/memfd:")) || fstatfs(fd, &fs) < 0)
		return true;
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		return false;
	default:
		return true;
	}
}

static bool is_writable_by_others(const struct stat *st)
{
	bool privileged = !st->st_uid || st->st_uid == geteuid();

	return st->st_mode & S_IWOTH ||
	       /* /usr/local is its group's in Debian */
	       (st->st_mode & S_IWGRP && st->st_gid && privileged);
}

struct file_account *file_account_of(int fd)
{
	char self[64], path[PATH_MAX];
	struct stat st;
	ssize_t n;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	n = readlink(self, path, sizeof(path) - 1);
	if (n <= 0 || fstat(fd, &st) < 0 || is_writable_by_others(&st))
		return &all.account[0];
	path[n] = '\0';
	if ((!st.st_uid || st.st_uid == geteuid()) && is_found_at(path, &st))
		return NULL;
	return is_served(fd, path) ? &all.account[0] : file_account_for(st.st_uid);
}

/* --- accounts --------------------------------------------------------------------------------- */

static struct file_account *find(uid_t owner)
{
	if (!all.subids)
		subids_open(&all.subids, "/etc/subuid", "/etc/passwd");
	if (all.subids)
		owner = subids_account(all.subids, owner);
	for (size_t i = 1; i < all.n; i++) {
		if (all.account[i].owner == owner)
			return &all.account[i];
	}
	if (all.n > OWNERS_MAX)
		return &all.account[0];
	all.account[all.n].owner = owner;
	return &all.account[all.n++];
}

struct file_account *file_account_for(uid_t owner)
{
	struct file_account *a;

	pthread_mutex_lock(&all.mutex);
	a = find(owner);
	pthread_mutex_unlock(&all.mutex);
	return a;
}

/* Half of what the others, which have @others of @total, leave. */
static bool is_within(__u64 total, __u64 others, __u64 wanted)
{
	return others < total && wanted <= (total - others) / 2;
}

bool file_account_take(struct file_account *a, __u64 bytes)
{
	__u64 others = 0;
	bool taken;

	pthread_mutex_lock(&all.mutex);
	for (size_t i = 0; i < all.n; i++)
		others += &all.account[i] == a ? 0 : all.account[i].bytes;
	taken = bytes <= FILE_ACCOUNTS_BYTES &&
		is_within(FILE_ACCOUNTS_BYTES, others, a->bytes + bytes);
	a->bytes += taken ? bytes : 0;
	pthread_mutex_unlock(&all.mutex);
	return taken;
}

void file_account_give(struct file_account *a, __u64 bytes)
{
	pthread_mutex_lock(&all.mutex);
	a->bytes -= bytes;
	pthread_mutex_unlock(&all.mutex);
}

/* Begins the next minute when the present one is over. Returns the time that others have used. */
static __u64 others_ns(const struct file_account *a)
{
	bool is_over = now_ns() - all.window_ns > WINDOW_NS;
	__u64 others = 0;

	if (is_over)
		all.window_ns = now_ns();
	for (size_t i = 0; i < all.n; i++) {
		if (is_over)
			all.account[i].cpu_ns = 0;
		others += &all.account[i] == a ? 0 : all.account[i].cpu_ns;
	}
	return others;
}

bool file_account_has_time(struct file_account *a, __u64 ns)
{
	bool has;

	pthread_mutex_lock(&all.mutex);
	has = is_within(FILE_ACCOUNTS_CPU_NS, others_ns(a), a->cpu_ns + ns);
	pthread_mutex_unlock(&all.mutex);
	return has;
}

void file_account_use_time(struct file_account *a, __u64 ns)
{
	pthread_mutex_lock(&all.mutex);
	a->cpu_ns += ns;
	pthread_mutex_unlock(&all.mutex);
}
