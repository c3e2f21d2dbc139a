/* file_account.c - what the files of each user may take while they are read */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/grow.h"
#include "base/subids.h"
#include "file_account.h"
#include "mounts.h"
#include "procfs.h"

#define WINDOW_NS 60000000000ull
#define OWNERS_MAX 255
#define COPY_BYTES_MIN (64ull << 10) /* with its descriptor */

struct file_account {
	uid_t owner;
	__u64 bytes;
	__u64 ns[FILE_TIMES];	   /* in this minute */
	__u64 owed_ns[FILE_TIMES]; /* for the minutes that follow */
};

/* Shared by all threads. The first account is that of any maker, and of owners beyond the limit. */
static struct {
	pthread_mutex_t mutex;
	struct subids *subids;
	struct file_account account[1 + OWNERS_MAX];
	size_t n;
	__u64 window_ns; /* its start */
} all = { .mutex = PTHREAD_MUTEX_INITIALIZER, .account = { { .owner = (uid_t)-1 } }, .n = 1 };

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

struct file_account *file_account_of_process(pid_t pid)
{
	char text[4096], *line;
	unsigned int owner;

	procfs_read(pid, "status", text, sizeof(text));
	line = strstr(text, "\nUid:");
	if (!line || sscanf(line, "\nUid: %u", &owner) != 1)
		return &all.account[0];
	return file_account_for(owner);
}

bool file_account_is_own(const struct file_account *a)
{
	return !a->owner || a->owner == geteuid();
}

struct file_account *file_account_of_any(void)
{
	return &all.account[0];
}

/* Of half of what the others, which have @others of @total, leave. */
static __u64 left(__u64 total, __u64 others, __u64 own)
{
	__u64 most = others < total ? (total - others) / 2 : 0;

	return own < most ? most - own : 0;
}

static __u64 bytes_left(const struct file_account *a)
{
	__u64 others = 0;

	for (size_t i = 0; i < all.n; i++)
		others += &all.account[i] == a ? 0 : all.account[i].bytes;
	return left(FILE_ACCOUNTS_BYTES, others, a->bytes);
}

__u64 file_account_bytes_left(struct file_account *a)
{
	__u64 bytes;

	pthread_mutex_lock(&all.mutex);
	bytes = bytes_left(a);
	pthread_mutex_unlock(&all.mutex);
	return bytes;
}

bool file_account_take(struct file_account *a, __u64 bytes)
{
	bool taken;

	pthread_mutex_lock(&all.mutex);
	taken = bytes <= bytes_left(a);
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

static __u64 time_left(const struct file_account *a, enum file_time kind)
{
	__u64 others = 0;

	for (size_t i = 0; i < all.n; i++)
		others += &all.account[i] == a ? 0 : all.account[i].ns[kind];
	return left(FILE_ACCOUNTS_NS, others, a->ns[kind]);
}

/* What is more than the account has now takes nothing from other accounts: it is owed. */
static void use_time(struct file_account *a, enum file_time kind, __u64 ns)
{
	__u64 most = time_left(a, kind), now = ns < most ? ns : most;

	a->ns[kind] += now;
	a->owed_ns[kind] += ns - now;
}

static void pay(struct file_account *a)
{
	for (int kind = 0; kind < FILE_TIMES; kind++) {
		__u64 owed = a->owed_ns[kind];

		a->owed_ns[kind] = 0;
		use_time(a, kind, owed);
	}
}

/* Begins the next minute when the present one is over, with what is owed. */
static void renew_time(void)
{
	if (now_ns() - all.window_ns <= WINDOW_NS)
		return;
	all.window_ns = now_ns();
	for (size_t i = 0; i < all.n; i++)
		memset(all.account[i].ns, 0, sizeof(all.account[i].ns));
	for (size_t i = 0; i < all.n; i++)
		pay(&all.account[i]);
}

__u64 file_account_time_left(struct file_account *a, enum file_time kind)
{
	__u64 ns;

	pthread_mutex_lock(&all.mutex);
	renew_time();
	ns = time_left(a, kind);
	pthread_mutex_unlock(&all.mutex);
	return ns;
}

void file_account_use_time(struct file_account *a, enum file_time kind, __u64 ns)
{
	pthread_mutex_lock(&all.mutex);
	renew_time();
	use_time(a, kind, ns);
	pthread_mutex_unlock(&all.mutex);
}

/* --- copies ----------------------------------------------------------------------------------- */

struct copy {
	dev_t dev;
	ino_t ino;
	__u64 bytes;
	struct file_account *account;
	bool used;
};

static struct {
	pthread_mutex_t mutex;
	struct copy *copy;
	size_t n;
} copies = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static int add_copy(const struct copy *copy)
{
	struct copy *more = grow(copies.copy, copies.n, sizeof(*more));

	if (!more)
		return -ENOMEM;
	copies.copy = more;
	if (!file_account_take(copy->account, copy->bytes))
		return -EFBIG;
	copies.copy[copies.n++] = *copy;
	return 0;
}

int file_account_keep_copy(struct file_account *a, int fd, __u64 bytes)
{
	struct copy copy = { .bytes = bytes < COPY_BYTES_MIN ? COPY_BYTES_MIN : bytes,
			     .account = a };
	struct stat st;
	int err;

	if (fstat(fd, &st) < 0)
		return -errno;
	copy.dev = st.st_dev;
	copy.ino = st.st_ino;
	pthread_mutex_lock(&copies.mutex);
	err = add_copy(&copy);
	pthread_mutex_unlock(&copies.mutex);
	return err;
}

static struct file_account *account_of_copy(int fd)
{
	struct file_account *account = NULL;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return NULL;
	pthread_mutex_lock(&copies.mutex);
	for (size_t i = 0; i < copies.n && !account; i++) {
		if (copies.copy[i].ino == st.st_ino && copies.copy[i].dev == st.st_dev)
			account = copies.copy[i].account;
	}
	pthread_mutex_unlock(&copies.mutex);
	return account;
}

/* Memfds are all on one file system. */
static void mark_copy(ino_t ino)
{
	for (size_t i = 0; i < copies.n; i++)
		copies.copy[i].used |= copies.copy[i].ino == ino;
}

static int mark_open_copies(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;
	struct stat st;
	char link[64];
	ssize_t n;

	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);
		link[n < 0 ? 0 : n] = '\0';
		if (strstr(link, FILE_COPY_NAME) && !fstat(atoi(e->d_name), &st))
			mark_copy(st.st_ino);
	}
	closedir(dir);
	return 0;
}

/* Not only executable mappings: libelf maps a file for reading. */
static int mark_mapped_copies(void)
{
	__cleanup(fclosep) FILE *f = fopen("/proc/self/maps", "re");
	__cleanup(freep) char *line = NULL;
	unsigned long long ino;
	size_t room = 0;

	if (!f)
		return -errno;
	while (getline(&line, &room, f) > 0) {
		if (strstr(line, FILE_COPY_NAME) && sscanf(line, "%*s %*s %*s %*s %llu", &ino) == 1)
			mark_copy((ino_t)ino);
	}
	return 0;
}

static bool collect_copies(void)
{
	size_t n = 0, before = copies.n;

	for (size_t i = 0; i < copies.n; i++)
		copies.copy[i].used = false;
	if (!copies.n || mark_open_copies() < 0 || mark_mapped_copies() < 0)
		return false;
	for (size_t i = 0; i < copies.n; i++) {
		if (copies.copy[i].used)
			copies.copy[n++] = copies.copy[i];
		else
			file_account_give(copies.copy[i].account, copies.copy[i].bytes);
	}
	copies.n = n;
	return n < before;
}

bool file_account_collect_copies(void)
{
	bool any;

	pthread_mutex_lock(&copies.mutex);
	any = collect_copies();
	pthread_mutex_unlock(&copies.mutex);
	return any;
}

/* --- makers ----------------------------------------------------------------------------------- */

/* Says whether process @pid ("self", or digits; NULL: none) finds the file @st at @path. */
static bool is_found_by(const char *pid, const char *path, const struct stat *st)
{
	char from[PATH_MAX + 32];
	struct stat there;

	if (!pid || *path != '/' || mounts_has_server_for(pid, path))
		return false;
	snprintf(from, sizeof(from), "/proc/%s/root%s", pid, path);
	return !stat(from, &there) && there.st_dev == st->st_dev && there.st_ino == st->st_ino;
}

/* Says whether a server provides the file system, and with it the file's owner. */
static bool is_served(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
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
	struct file_account *copied = account_of_copy(fd);
	char self[64], path[PATH_MAX];
	struct stat st;
	ssize_t n;

	if (copied)
		return copied;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	n = readlink(self, path, sizeof(path) - 1);
	if (n <= 0 || fstat(fd, &st) < 0 || is_writable_by_others(&st))
		return &all.account[0];
	path[n] = '\0';
	if ((!st.st_uid || st.st_uid == geteuid()) &&
	    (is_found_by("self", path, &st) || is_found_by(mounts_trusted(), path, &st)))
		return NULL;
	return is_served(fd) ? &all.account[0] : file_account_for(st.st_uid);
}
